#!/usr/bin/env bash
# Emacs 30.1 of Debian bookworm-backports (its eglot shows inlay hints), unpacked: emacs.sh FOLDER
# The libraries it needs come with Debian 12's own emacs-nox.
set -euo pipefail
folder=$1 prefix=$1/prefix
"$(dirname "$0")/suite.sh" "$folder/apt" bookworm-backports alone "$prefix" emacs-nox emacs-bin-common emacs-common emacs-el
share=$prefix/usr/share/emacs/30.1
libexec=$(dirname "$(find "$prefix/usr/libexec/emacs" -name '*.pdmp' | head -1)")
cat > "$folder/emacs" <<LAUNCH
#!/bin/sh
export EMACSLOADPATH=$share/lisp EMACSDATA=$share/etc EMACSDOC=$share/etc EMACSPATH=$libexec
exec $prefix/usr/bin/emacs-nox --dump-file=$(find "$libexec" -name '*.pdmp' | head -1) "\$@"
LAUNCH
chmod +x "$folder/emacs"
ln -sf "$prefix/usr/bin/emacsclient.emacs" "$folder/emacsclient"
"$folder/emacsclient" --version >/dev/null
"$folder/emacs" --batch --eval '(progn (require (quote eglot)) (princ (format "Emacs %s\n" emacs-version)))'
