#!/usr/bin/env bash
# Helix 25.07 of Debian forky, unpacked: helix.sh FOLDER
set -euo pipefail
folder=$1 prefix=$1/prefix
"$(dirname "$0")/suite.sh" "$folder/apt" forky whole "$prefix" usr/lib/hx/hx hx libc6
printf '#!/bin/sh\nexport HELIX_RUNTIME=%s/usr/lib/hx/runtime\nexec %s/usr/lib/hx/hx "$@"\n' "$prefix" "$prefix" > "$folder/hx"
chmod +x "$folder/hx"
"$folder/hx" --version
