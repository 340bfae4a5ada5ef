#!/usr/bin/env bash
# Installs the clients that the tests run, once, below $HYPATIA_TEST_CLIENTS; prints "<version> <binary>" for each.
#   get_client.sh                 the oldest we support by its own way in, and the newest that is known to run
#   get_client.sh 2.1.250 latest  these ("latest" asks the registry)
# The package holds one self-contained binary: nothing of it is run here.
set -euo pipefail
root=${HYPATIA_TEST_CLIENTS:-$HOME/.cache/hypatia-mem-clients}
package=@anthropic-ai/claude-code-linux-x64
[ $# -gt 0 ] || set -- 2.1.197 2.1.332
for version in "$@"; do
    if [ "$version" = latest ]; then version=$(npm view "$package" version); fi
    binary=$root/$version/node_modules/$package/claude
    if [ ! -x "$binary" ]; then
        mkdir -p "$root/$version"
        npm install --silent --no-audit --no-fund --force --ignore-scripts \
            --prefix "$root/$version" "$package@$version" >&2
    fi
    echo "$version $binary"
done
