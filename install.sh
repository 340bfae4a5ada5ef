#!/bin/sh
# Install hypatia-mem from this clone: a virtual environment, a link on the PATH, the hooks; then
# one turn through the installed hook in a scratch home. Options go to `hypatia-mem install`.
set -eu

fail() {
    printf '%s\n' "install.sh: $*" >&2
    exit 1
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
data=${XDG_DATA_HOME:-${HOME:?install.sh: HOME is not set}/.local/share}
venv=${HYPATIA_MEM_VENV:-$data/hypatia-mem-venv}
bin=$HOME/.local/bin

python=
for name in ${HYPATIA_MEM_PYTHON:+"$HYPATIA_MEM_PYTHON"} python3.13 python3.12 python3.11 python3.14 python3; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
        python=$name
        "$python" -c 'import ensurepip, venv' 2>/dev/null && break
    fi
done
[ -n "$python" ] || fail "needs Python 3.11 to 3.14, and none is on the PATH. Install one, or name it: HYPATIA_MEM_PYTHON=/path/to/python3.12 ./install.sh"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$("$python" --version) has no venv module. On Debian and Ubuntu: apt install python3-venv (or python3.X-venv of that version)."

echo "Installing into $venv with $("$python" --version)"
# One that works is kept: the hooks of running sessions import from it.
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$venv" ||
    fail "the virtual environment $venv cannot be made."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$here" ||
    fail "pip could not install the package; what it said is above."

mkdir -p "$bin"
if [ -e "$bin/hypatia-mem" ] && [ ! -L "$bin/hypatia-mem" ]; then
    fail "$bin/hypatia-mem is another program; move it away, or start $venv/bin/hypatia-mem install."
fi
ln -sf "$venv/bin/hypatia-mem" "$bin/hypatia-mem"
"$bin/hypatia-mem" install --demo "$@"
case ":$PATH:" in
*":$bin:"*) ;;
*) echo "Note: $bin is not on your PATH. Add it, so that you and the agent find hypatia-mem." ;;
esac
