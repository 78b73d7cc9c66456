# What every case shares: servers of the lab, studies by plimsoll, and findings that are checked.
# A case sources this file first and calls `finish` last. Bash only.
# Not here: what a case measures, and what it finds (NN-name/run).
#
# Variables of the environment:
#   PLIMSOLL   the program to run [default: target/release/plimsoll, built if it is missing]
#   CASEBOOK   short: only the parts that `make test` has time for
#   REPEATS    how often a disturbed study is made again [default: 2; short: 1]
set -euo pipefail

case_dir=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
casebook_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$casebook_dir")
case_name=$(basename "$case_dir")
out=$root/_output/casebook/$case_name
short=false
[ "${CASEBOOK:-}" != short ] || short=true
REPEATS=${REPEATS:-$($short && echo 1 || echo 2)}
# Databases and logs of the casebook are apart from those of a lab that somebody uses by hand.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll-casebook

fail() {
    echo "casebook: $1" >&2
    exit 2
}

if [ -z "${PLIMSOLL:-}" ]; then
    PLIMSOLL=$root/target/release/plimsoll
    [ -x "$PLIMSOLL" ] || (cd "$root" && cargo build --release --locked --package plimsoll)
fi
[ -x "$PLIMSOLL" ] || fail "PLIMSOLL=$PLIMSOLL is no program. Build one with cargo build --release."
command -v python3 >/dev/null || fail "python3 is missing. Install it with: sudo apt-get install -y python3"

# Two cases at once would disturb each other, and end each other's servers.
mkdir -p "$(dirname "$cache")" "$out"
exec 9>"$cache.lock"
flock --wait 60 9 || fail "another case runs. Wait for its end."

# Servers -------------------------------------------------------------------------------------

lab() {
    local words=$1
    shift
    "$root/lab/scripts/lab" --cache "$cache" "$words" "$@" 9>&-
}

# server NAME CASE ADDRESS [LAB FLAGS] [-- SERVICE FLAGS]: starts a copy of a case of the lab and
# prints one of its addresses.
server() {
    local name=$1 of_case=$2 address=$3
    shift 3
    lab up "$of_case" --as "$name" "$@" >"$out/$name.address.json" 2>>"$out/lab.log" || {
        tail -n 3 "$out/lab.log" >&2
        fail "the server $name did not start (all of it: $out/lab.log)"
    }
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["addresses"][sys.argv[2]])' \
        "$out/$name.address.json" "$address"
}

# A service that logs each request writes hundreds of MB under load. Its files are open for
# appending, so they can be emptied meanwhile.
empty_logs() {
    find "$cache/logs" -maxdepth 1 -type f -exec truncate --size 0 {} + 2>/dev/null || true
}

# Studies -------------------------------------------------------------------------------------

step() {
    printf '\n%s\n' "$1"
}

# study NAME COMMAND ARGUMENTS: shows and runs a command of plimsoll. The document of --json goes
# to $out/NAME.json, the run file to $out/NAME.plimsoll. It becomes the study of `finding`.
study() {
    study=$1
    study_words=("${@:2}")
    make_study
}

make_study() {
    local files=(--output "$out/$study.plimsoll") status=0
    case ${study_words[0]} in
        sweep) files=(--name "$study" --dir "$out") ;;
        traffic | model | diff | profile) files=() ;;
    esac
    printf '\n$ plimsoll %s\n' "$(spell "${study_words[@]}")"
    rm -f "$out/$study.plimsoll" "$out/$study.json"
    "$PLIMSOLL" "${study_words[@]}" "${files[@]}" --json >"$out/$study.json" 2>"$out/$study.err" 9>&- \
        || status=$?
    empty_logs
    # 1: no cause is named, or nothing succeeded; 3: inconclusive. Both have a document.
    if [ $status -ne 0 ] && [ $status -ne 1 ] && [ $status -ne 3 ] || [ ! -s "$out/$study.json" ]; then
        cat "$out/$study.err" >&2
        fail "plimsoll ${study_words[0]} ended with exit code $status"
    fi
    case ${study_words[0]} in
        traffic | model | diff | profile) "$PLIMSOLL" "${study_words[@]}" >"$out/$study.txt" 2>&1 || true ;;
        *) "$PLIMSOLL" show "$out/$study.plimsoll" >"$out/$study.txt" 2>&1 || true ;;
    esac
    head -n 24 "$out/$study.txt"
}

# background ARGUMENTS: a load of plimsoll beside the studies that follow; `wait_background` ends it.
background() {
    printf '\n$ plimsoll %s &\n' "$(spell "$@")"
    "$PLIMSOLL" "$@" --json >"$out/background.json" 2>/dev/null 9>&- &
    jobs_of_case+=($!)
    sleep 1
}

wait_background() {
    wait "${jobs_of_case[-1]}" || true
}

# profile_under_load NAME SERVER PATH SECONDS: the CPU profile of a server under 8 users, as the
# write-ups took it, with its flame graph; `functions` is the study of it.
profile_under_load() {
    local name=$1 server=$2 path=$3 seconds=$4
    background run -c 8 -d "$((seconds + 3))s" "$server$path"
    printf '\n$ plimsoll profile %s --seconds %d -o cpu.pb.gz -o flame.svg\n' "$server/debug/pprof" "$seconds"
    "$PLIMSOLL" profile "$server/debug/pprof" --seconds "$seconds" --top 1 \
        --output "$out/$name.pb.gz" --output "$out/flame.svg" >/dev/null 9>&-
    wait_background
    empty_logs
    echo "picture    _output/casebook/$case_name/flame.svg"
    study "$name" profile --top 400 "$out/$name.pb.gz"
}

# Words as a shell reads them, quoted only where that is needed; a token is not shown.
spell() {
    local word
    for word in "$@"; do
        [ -z "${TOKEN:-}" ] || word=${word//"$TOKEN"/TOKEN}
        case $word in
            *[!A-Za-z0-9_.,:/=@%+-]* | '') printf "'%s' " "$word" ;;
            *) printf '%s ' "${word#"$root"/}" ;;
        esac
    done
}

# Waits until half of the machine is idle, for 20 s at most (5 s in `make test`).
wait_for_quiet() {
    local user nice system idle rest before_idle before_all all second
    for ((second = 0; second <= ($($short && echo 5 || echo 20)); second++)); do
        read -r _ user nice system idle rest </proc/stat
        all=$((user + nice + system + idle))
        if [ $second -gt 0 ] && [ $((2 * (idle - before_idle))) -ge $((all - before_all)) ]; then
            return
        fi
        before_idle=$idle before_all=$all
        sleep 1
    done
}

# finding TEXT EXPRESSION: checks an expression over the study's document `d` (casebook/finding has
# the names that it may use). A study that was too disturbed to say is made again.
finding() {
    local text=$1 expression=$2 try status reason
    for ((try = 0; ; try++)); do
        status=0
        reason=$("$casebook_dir/finding" "$out" "$study" "$expression") || status=$?
        # In `make test` a case has a minute.
        if [ $status -ne 3 ] || [ $try -ge "$REPEATS" ] || { $short && [ $SECONDS -gt 35 ]; }; then
            break
        fi
        printf '\nDisturbed: %s. Repeated, %d of %d.\n' "$reason" $((try + 1)) "$REPEATS"
        wait_for_quiet
        make_study
    done
    case $status in
        0) echo "found      $text" ;;
        1) echo "not found  $text ($reason)" ;;
        3) echo "disturbed  $text ($reason)" ;;
        *) fail "finding '$text': $reason" ;;
    esac | tee -a "$out/findings.txt.new"
}

# seen TEXT EXPRESSION: prints a value of the study's document that no verdict depends on.
seen() {
    printf 'seen       %s: %s\n' "$1" "$("$casebook_dir/finding" --value "$out" "$study" "$2" || true)"
}

# picture NAME [CHART]: draws a run file of the case beside it.
picture() {
    "$PLIMSOLL" report "$out/$1.plimsoll" ${2:+--chart "$2"} --output "$out/$1${2:+-$2}.svg"
    echo "picture    _output/casebook/$case_name/$1${2:+-$2}.svg"
}

# Begin and end -------------------------------------------------------------------------------

end_servers() {
    lab down all >>"$out/lab.log" 2>&1 || true
    for pid in ${jobs_of_case[@]+"${jobs_of_case[@]}"}; do
        kill "$pid" 2>/dev/null || true
    done
}

# finish: the result of the case. Exit code 0: all findings found; 1: one not found; 3: one is not
# known, since the machine was disturbed each time.
finish() {
    mv "$out/findings.txt.new" "$out/findings.txt"
    local all found wrong
    all=$(wc -l <"$out/findings.txt")
    found=$(grep -c '^found' "$out/findings.txt" || true)
    wrong=$(grep -c '^not found' "$out/findings.txt" || true)
    printf '\n%s: %d of %d findings, in %d s\n' "$case_name" "$found" "$all" $SECONDS
    [ "$wrong" -eq 0 ] || exit 1
    [ "$found" -eq "$all" ] || exit 3
}

jobs_of_case=()
: >"$out/lab.log"
rm -f "$out/findings.txt" "$out/findings.txt.new"
touch "$out/findings.txt.new"
trap end_servers EXIT
lab down all >>"$out/lab.log" 2>&1 || {
    tail -n 3 "$out/lab.log" >&2
    fail "the lab cannot be started (see above)"
}
