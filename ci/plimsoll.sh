#!/usr/bin/env bash
# The steps of the action, for any CI system: runs one plimsoll command, and writes its reports into a folder.
#
# Variables (all but COMMAND may be empty):
#   COMMAND   find, run, prove, sweep, explain or overload
#   ARGS      its words, quoted as for a shell; nothing in them is expanded
#   SLO       what users must get, such as 'success>=99.9%, p99<=200ms'
#   FAIL_IF   exit with 1 when this is true, such as 'line<500', 'p99>200ms' or worse
#   BASELINE  a run file to compare with
#   OUT       the folder [default: _output/plimsoll-ci]
#   VERSION   what to install first: a version on PyPI, or the path of a wheel or a .deb; empty installs nothing
#   PLIMSOLL  the program, with an empty VERSION [default: plimsoll]
#   GITHUB_STEP_SUMMARY, GITHUB_OUTPUT   set by GitHub
#
# Writes run.plimsoll, page.html, junit.xml, summary.md and comment.md (the summary with a mark, so that a bot finds its
# own comment again). The exit code is that of the command.
set -uo pipefail

plimsoll=${PLIMSOLL:-plimsoll}
command=${COMMAND:-find}
out=${OUT:-_output/plimsoll-ci}
run=$out/run.plimsoll

case "$command" in
    find | run | prove | sweep | explain | overload) ;;
    *)
        echo "plimsoll: command '$command' is not find, run, prove, sweep, explain or overload" >&2
        exit 2
        ;;
esac
mkdir -p "$out" || exit 2
rm -f "$run"

# Into a folder of its own, which needs no rights and leaves nothing behind.
if [ -n "${VERSION:-}" ]; then
    place=$(mktemp -d) || exit 2
    trap 'rm -rf "$place"' EXIT
    case "$VERSION" in
        *.deb) dpkg -x "$VERSION" "$place/tree" && mv "$place/tree/usr/bin" "$place/bin" ;;
        *.whl) python3 -m pip install --quiet --no-deps --target "$place" "$VERSION" ;;
        *) python3 -m pip install --quiet --no-deps --target "$place" "plimsoll==$VERSION" ;;
    esac >&2 || {
        echo "plimsoll: version '$VERSION' cannot be installed: give a version on PyPI, or the path of a wheel or a .deb" >&2
        exit 2
    }
    plimsoll=$place/bin/plimsoll
fi
command -v "$plimsoll" >/dev/null || {
    echo "plimsoll: the program '$plimsoll' is not there: give VERSION, which installs it, or PLIMSOLL" >&2
    exit 2
}

# Quotation marks are understood, and nothing else: what comes from a pull request runs nothing.
words=()
if [ -n "${ARGS:-}" ]; then
    list=$(printf '%s\n' "$ARGS" | xargs -n 1 printf '%s\n') || {
        echo "plimsoll: args: a quotation mark is not closed" >&2
        exit 2
    }
    mapfile -t words <<<"$list"
fi

flags=()
report=()
if [ -n "${SLO:-}" ]; then
    case "$command" in find | explain | overload) flags+=("--slo=$SLO") ;; esac
    report=("--slo=$SLO")
fi
[ -z "${FAIL_IF:-}" ] || flags+=("--fail-if=$FAIL_IF")
[ -z "${ON_INCONCLUSIVE:-}" ] || flags+=("--on-inconclusive=$ON_INCONCLUSIVE")
case "$command" in
    sweep) flags+=("--dir=$out" --name=run) ;;
    *) flags+=("--output=$run") ;;
esac

messages=$out/messages.txt
{ "$plimsoll" "$command" "${flags[@]}" ${words[@]+"${words[@]}"} 2>&1 >&3 | tee "$messages" >&2; } 3>&1
code=${PIPESTATUS[0]}
# What a gate says is no part of the run file.
gate() { sed -n '/^--fail-if /p' "$messages" 2>/dev/null; }
case $code in
    0) outcome=passed ;;
    1) outcome=failed ;;
    3) outcome=inconclusive ;;
    *) outcome="ended with exit code $code" ;;
esac

if [ -f "$run" ]; then
    "$plimsoll" report "$run" --format html -o "$out/page.html" >/dev/null
    "$plimsoll" report "$run" --format junit ${report[@]+"${report[@]}"} -o "$out/junit.xml" >/dev/null
    "$plimsoll" report "$run" --format md -o "$out/summary.md" >/dev/null
    if [ -n "${BASELINE:-}" ] && [ -f "${BASELINE:-}" ]; then
        {
            printf '\n### Compared with the baseline\n\n```\n'
            "$plimsoll" diff "$BASELINE" "$run" --dir "$out" 2>&1
            printf '```\n'
        } >>"$out/summary.md"
    elif [ -n "${BASELINE:-}" ]; then
        printf '\nThere is no baseline at `%s` yet.\n' "$BASELINE" >>"$out/summary.md"
    fi
    # Errors stand before times and rates: plimsoll writes the lines in that order.
    if [ -n "$(gate)" ] || [ "$code" -ne 0 ]; then
        {
            printf '\n### The gate: %s\n\n' "$outcome"
            gate | sed 's/^/    /'
        } >>"$out/summary.md"
    fi
else
    printf '`plimsoll %s` gave no result (exit code %s): see the log of the job.\n' "$command" "$code" >"$out/summary.md"
fi
{
    echo '<!-- plimsoll -->'
    cat "$out/summary.md"
} >"$out/comment.md"

[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'exit-code=%s\noutcome=%s\nfolder=%s\ncomment=%s\n' \
    "$code" "$outcome" "$out" "$out/comment.md" >>"$GITHUB_OUTPUT"
exit "$code"
