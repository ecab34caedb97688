/**
 * Shell scripts that run on the other machine: POSIX sh, with uname, mkdir, mv, rm, touch, tar, and gzip if it is there. A login shell passes them on,
 * which may be csh or fish: they are one line without backslashes and single quotes. The first line of output that starts with `heddle-remote` ends
 * whatever that shell prints before.
 */

/** Sets the cache folder. */
const cache = [
  'umask 077;',
  'if [ -z "$HOME" ] && [ -z "$HEDDLE_CACHE$XDG_CACHE_HOME" ]; then echo "heddle: no cache: there is no home folder" >&2; exit 1; fi;',
  `c="\${HEDDLE_CACHE:-\${XDG_CACHE_HOME:-$HOME/.cache}/heddle}/remote";`,
]

const script = (...lines: readonly string[]): string => [...cache, ...lines].join(' ')

/** Starts the agent from its parts, given as folders of Node, the script and the addon; or prints those that are missing. */
export const startScript = script(
  'z=plain; command -v gzip >/dev/null 2>&1 && z=gzip;',
  'm=;',
  'for p in "$@"; do [ -e "$c/$p" ] && touch "$c/$p" || m="$m $p"; done;',
  `echo "heddle-remote $(uname -s) $(uname -m) $z \${m:- ready}";`,
  '[ -z "$m" ] || exit 0;',
  'exec "$c/$1/node" "$c/$2/agent.mjs" "$c" "$c/$3"',
)

/** Unpacks parts, given as folders after the compression, from the input. The last file of the archive says that it is whole. */
export const putScript = script(
  'z="$1"; shift;',
  't=".put-$$";',
  'mkdir -p "$c" && cd "$c" && mkdir "$t" || { echo "heddle: no cache: $c" >&2; exit 1; };',
  'trap "rm -rf $t" EXIT;',
  'trap "exit 1" HUP INT TERM PIPE;',
  'if [ "$z" = gzip ]; then gzip -dc | tar -xf - -C "$t"; else tar -xf - -C "$t"; fi || exit 1;',
  '[ -e "$t/whole" ] || { echo "heddle: the transfer was cut" >&2; exit 1; };',
  'for p in "$@"; do [ -e "$p" ] || mv "$t/$p" "$p" || exit 1; done;',
  'echo "heddle-remote put"',
)

/** First line of a script's answer. */
export const marker = 'heddle-remote '
