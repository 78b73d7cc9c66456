#!/usr/bin/env bash
# Posts a Markdown file as the one comment of a pull request on GitHub: comment.sh FILE. A comment of an earlier run is
# updated, not repeated; it is found by the first line of the file, which is a mark that readers do not see.
#
# Variables: GH_REPO (owner/name), PULL_REQUEST (its number), GH_TOKEN (for `gh`, with pull-requests: write).
set -uo pipefail

file=${1:?comment.sh FILE}
[ -s "$file" ] || { echo "comment: '$file' is not there: run ci/plimsoll.sh first" >&2; exit 2; }
: "${GH_REPO:?}"
[[ "${PULL_REQUEST:-}" =~ ^[0-9]+$ ]] || {
    echo "comment: PULL_REQUEST '${PULL_REQUEST:-}' is no number: post only in a job of a pull request" >&2
    exit 2
}
mark=$(head -n 1 "$file")
case "$mark" in
    '<!-- plimsoll'*' -->') ;;
    *) echo "comment: '$file' does not begin with a mark: post the comment.md of ci/plimsoll.sh" >&2; exit 2 ;;
esac
comments=repos/$GH_REPO/issues/$PULL_REQUEST/comments
# The mark is compared as a text, not as a pattern. Of several the first is updated.
found=$(gh api --paginate "$comments" --jq '.[] | [.id, (.body | split("\n")[0] | rtrimstr("\r"))] | @tsv') || {
    echo "comment: the comments of pull request $PULL_REQUEST cannot be read: the job needs pull-requests: write" >&2
    exit 1
}
id=$(MARK=$mark awk -F '\t' '$2 == ENVIRON["MARK"] { print $1; exit }' <<<"$found")
if [ -n "$id" ]; then
    gh api --method PATCH "repos/$GH_REPO/issues/comments/$id" --field "body=@$file" --silent
else
    gh api --method POST "$comments" --field "body=@$file" --silent
fi
