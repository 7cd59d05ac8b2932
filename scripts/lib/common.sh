# Shared by the scripts: sourced, never run. Sets `root` (the checkout) and goes there.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1

say() { printf '%s\n' "$*" >&2; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Prints the head of the script that calls it, and ends it, when one of the words asks for help.
help_if_asked() {
    local word
    for word in "$@"; do
        case $word in
        -h | --help)
            sed -n '2,/^set -/p' "${BASH_SOURCE[1]}" | sed -n 's/^# \{0,1\}//p'
            exit 0
            ;;
        esac
    done
}

# What the programs are compiled against, whatever machine they are for.
libraries=(libc6-dev libstdc++-12-dev libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libboost-test1.81-dev
    libssl-dev libsqlite3-dev libspdlog-dev libuchardet-dev)

# Compilers that run at once: one per core, as long as each has 1.5 GB of memory. JOBS overrides it.
jobs_that_fit() {
    local cores available fit
    cores=$(nproc)
    available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    fit=$((available / 1500))
    if [ "$fit" -gt "$cores" ]; then fit=$cores; fi
    if [ "$fit" -lt 1 ]; then fit=1; fi
    printf '%s\n' "${JOBS:-$fit}"
}
