# Sourced by tests/run and .ci/run: carries out a script in phases, and says at its end how long each one took.
# The first phase that fails ends the script.

target=${CARGO_TARGET_DIR:-target}
logs=$target/logs
mkdir -p "$logs"

# loud NAME COMMAND...: a phase whose output is worth seeing.
loud() {
    begin "$1" ""
    "${@:2}"
    finish ""
}

# quiet NAME COMMAND...: a phase whose output is worth seeing only if it fails; it goes to a file.
quiet() {
    begin "$1" "$logs/$1.log"
    "${@:2}" >"$log" 2>&1
    finish ""
}

begin() {
    running=$1 log=$2 started=$SECONDS
    printf '== %s%s\n' "$running" "${log:+ (output in $log)}"
}

finish() {
    local took=$((SECONDS - started))
    table+=$(printf '%-12s %3d:%02d%s' "$running" $((took / 60)) $((took % 60)) "$1")$'\n'
    running=
}

summary() {
    if [[ -n $running ]]; then
        [[ -z $log ]] || tail -n 300 "$log"
        finish "  failed"
    fi
    printf '\n%s, minutes by phase\n%s' "$0" "$table"
}

running='' log='' started=0 table=''
trap summary EXIT
