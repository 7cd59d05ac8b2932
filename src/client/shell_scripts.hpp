#pragma once

#include <string>
#include <string_view>

namespace sandboxd::client::by_shell {

// Exit statuses, as the published clients' scripts have them (contract N13.6).
inline constexpr int exit_missing = 102;
inline constexpr int exit_denied = 113;
inline constexpr int exit_working_directory = 116;
inline constexpr int exit_exists = 117;
inline constexpr int exit_not_a_directory = 120;
inline constexpr int exit_is_a_directory = 121;
inline constexpr int exit_not_regular = 122;

/// Before every script: $p is the path ($1; in base64 when $2 is "b64"), and $3 and so on become the
/// arguments. `lost` leaves with why nothing is at $p: a file among its parents, a directory that may not be
/// searched, or nothing. (A name that begins with "-" gets "./".)
inline constexpr std::string_view prelude = R"sh(export LC_ALL=C
p=$1
[ "$2" = b64 ] && { p=$(printf %s "$1" | base64 -d; printf x); p=${p%x}; }
shift 2
case $p in -*) p=./$p;; esac
lost() {
  q=$p
  while :; do
    case $q in */*) q=${q%/*};; *) q=.;; esac
    [ -n "$q" ] || q=/
    if [ -e "$q" ] || [ -L "$q" ]; then
      [ -d "$q" ] || exit 120
      [ -x "$q" ] || exit 113
      exit 102
    fi
    case $q in / | .) exit 102;; esac
  done
}
at() { [ -e "$p" ] || [ -L "$p" ]; }
size() { stat -Lc %s -- "$1" 2>/dev/null || wc -c <"$1"; }
)sh";

inline constexpr std::string_view stat_script = R"sh([ -e "$p" ] || { [ -L "$p" ] && exit 102; lost; }
if [ -d "$p" ]; then echo d; elif [ -f "$p" ]; then echo "f $(size "$p")"; else echo o; fi
)sh";

/// Names by kind, each ended by NUL, in base64; then a line with the sizes of the files among them.
inline constexpr std::string_view list_script = R"sh([ -d "$p" ] || { [ -e "$p" ] && exit 120; lost; }
[ -r "$p" ] && cd "$p" 2>/dev/null || exit 113
all() {
  for n in .* *; do
    case $n in . | ..) continue;; esac
    if [ -d "$n" ]; then t=d; elif [ -f "$n" ]; then t=f; elif [ -e "$n" ] || [ -L "$n" ]; then t=o; else continue; fi
    printf '%s%s\0' "$t" "$n"
  done
}
all | base64 | tr -d '\n'
echo
for n in .* *; do [ -f "$n" ] && printf './%s\0' "$n"; done | xargs -0 stat -Lc %s 2>/dev/null | tr '\n' ' '
echo
)sh";

/// "size", or a piece in base64: $1 pieces of 64 KiB after the first $2.
inline constexpr std::string_view read_script = R"sh([ -d "$p" ] && exit 121
[ -e "$p" ] || lost
[ -f "$p" ] || exit 122
[ -r "$p" ] || exit 113
if [ $# -eq 0 ]; then size "$p"; else dd if="$p" bs=65536 count="$1" skip="$2" 2>/dev/null | base64; fi
)sh";

/// Makes parents and the temporary file $1 beside the target.
inline constexpr std::string_view write_begin_script = R"sh([ -d "$p" ] && exit 121
if [ -e "$p" ]; then [ -f "$p" ] || exit 122; [ -w "$p" ] || exit 113; fi
case $p in */*) d=${p%/*}; [ -n "$d" ] || d=/;; *) d=.;; esac
if ! [ -d "$d" ]; then
  q=$d
  until [ -e "$q" ] || [ -L "$q" ]; do case $q in */*) q=${q%/*}; [ -n "$q" ] || q=/;; *) q=.;; esac; done
  [ -d "$q" ] || exit 120
  [ -w "$q" ] && [ -x "$q" ] || exit 113
  mkdir -p "$d" || exit 1
fi
[ -w "$d" ] && [ -x "$d" ] || exit 113
: >"$d/$1"
)sh";

/// Adds the pieces after $1 to the temporary file, which goes when that fails.
inline constexpr std::string_view write_piece_script = R"sh(case $p in */*) d=${p%/*}/;; *) d=;; esac
t=$d$1
shift
printf %s "$@" | base64 -d >>"$t" || { rm -f "$t"; exit 1; }
)sh";

/// The temporary file becomes the target: its content where something is there (mode and links stay), else
/// itself.
inline constexpr std::string_view write_end_script = R"sh(case $p in */*) d=${p%/*}/;; *) d=;; esac
t=$d$1
[ "$(size "$t")" = "$2" ] || { rm -f "$t"; echo "the temporary file is not whole" >&2; exit 1; }
if at; then cat "$t" >"$p" && rm -f "$t"; else mv "$t" "$p"; fi || { rm -f "$t"; exit 1; }
)sh";

inline constexpr std::string_view write_undo_script = R"sh(case $p in */*) d=${p%/*}/;; *) d=;; esac
rm -f "$d$1"
)sh";

inline constexpr std::string_view make_dir_script = R"sh([ -d "$p" ] && exit 0
at && exit 117
q=$p
until [ -e "$q" ] || [ -L "$q" ]; do case $q in */*) q=${q%/*}; [ -n "$q" ] || q=/;; *) q=.;; esac; done
[ -d "$q" ] || exit 120
[ -w "$q" ] && [ -x "$q" ] || exit 113
mkdir -p "$p"
)sh";

inline constexpr std::string_view remove_script = R"sh(at || lost
if [ -d "$p" ] && ! [ -L "$p" ]; then
  d=$(cd "$p" 2>/dev/null && pwd -P; printf x)
  d=${d%?x}
  w=$(pwd -P; printf x)
  w=${w%?x}
  case $w/ in "${d%/}"/*) [ -n "$d" ] && exit 116;; esac
fi
case $p in */*) q=${p%/*}; [ -n "$q" ] || q=/;; *) q=.;; esac
[ -w "$q" ] && [ -x "$q" ] || exit 113
rm -rf "$p"
)sh";

/// Resolves part by part; what is not there is kept, and so is a link that leads back to itself.
inline constexpr std::string_view realpath_script =
    R"sh(case $p in /*) r=;; *) r=$(pwd -P; printf x); r=${r%?x}; [ "$r" = / ] && r=;; esac
left=$p
hops=0
while [ -n "$left" ]; do
  case $left in */*) c=${left%%/*}; left=${left#*/};; *) c=$left; left=;; esac
  case $c in
    '' | .) ;;
    ..) r=${r%/*};;
    *)
      if [ -L "$r/$c" ] && [ $hops -lt 40 ]; then
        hops=$((hops + 1))
        l=$(readlink -n "$r/$c"; printf x)
        l=${l%x}
        case $l in /*) r=;; esac
        left=$l${left:+/$left}
      else
        r=$r/$c
      fi
      ;;
  esac
done
printf %s "${r:-/}" | base64
)sh";

[[nodiscard]] inline std::string whole(std::string_view script) {
    return std::string(prelude) + std::string(script);
}

} // namespace sandboxd::client::by_shell
