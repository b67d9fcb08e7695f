;;; harness.el --- loaded into Emacs after the page's snippet  -*- lexical-binding: t -*-
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil create-lockfiles nil
      ring-bell-function #'ignore use-dialog-box nil vc-handled-backends nil
      eldoc-idle-delay 0.1 confirm-kill-processes nil kill-emacs-query-functions nil
      eglot-connect-timeout 120 eglot-sync-connect nil
      eglot-confirm-server-edits nil)
(require 'eglot)
(require 'json)
(require 'project)

;; The folder of the file is the project, where the page's snippet does not say another.
(add-hook 'project-find-functions (lambda (folder) (cons 'transient folder)) t)

;; A profile asked for while the one before is still ending is asked about by the server.
(defvar t-wanted "Wait for it" "What to choose in a menu.")
(defvar t-offered nil "Titles of the last menu.")
(defvar t-progress nil "Kinds of the progress notifications so far.")

(advice-add 'completing-read :override
            (lambda (_prompt collection &optional predicate &rest _)
              (let* ((titles (all-completions "" collection predicate))
                     (found (and t-wanted
                                 (seq-find (lambda (title) (string-search t-wanted title)) titles))))
                (setq t-offered (mapcar #'substring-no-properties titles))
                (or found (keyboard-quit)))))
(setq last-nonmenu-event t)

(advice-add 'eglot-handle-notification :before
            (lambda (_server method &rest arguments)
              (when (eq method '$/progress)
                (push (plist-get (plist-get arguments :value) :kind) t-progress))))

(defun t-managed () (if (eglot-managed-p) t :json-false))
(defun t-progress () (vconcat (reverse t-progress)))
(defun t-offered () (vconcat t-offered))
(defun t-text () (buffer-substring-no-properties (point-min) (point-max)))

(defun t-hints ()
  (redisplay t)
  (vconcat
   (delq nil
         (mapcar (lambda (overlay)
                   (when (overlay-get overlay 'eglot--inlay-hint)
                     (vector (line-number-at-pos (overlay-start overlay))
                             (substring-no-properties
                              (or (overlay-get overlay 'after-string)
                                  (overlay-get overlay 'before-string) "")))))
                 (overlays-in (point-min) (point-max))))))

(defun t-diagnostics ()
  (flymake-start nil t)
  (vconcat (mapcar (lambda (diagnostic)
                     (vector (line-number-at-pos (flymake-diagnostic-beg diagnostic))
                             (format "%s" (flymake-diagnostic-text diagnostic))))
                   (flymake-diagnostics))))

(defun t-goto (line column)
  (goto-char (point-min))
  (forward-line (1- line))
  (move-to-column column)
  t)

(defun t-hover (line column)
  (t-goto line column)
  (eldoc-print-current-symbol-info)
  (let ((shown (seq-find (lambda (buffer) (string-match-p "\\*eldoc" (buffer-name buffer))) (buffer-list))))
    (if shown (with-current-buffer shown (t-text)) "")))

(defun t-actions (line wanted)
  (t-goto line 4)
  (setq t-wanted wanted t-offered nil)
  (condition-case failure
      (progn (call-interactively #'eglot-code-actions) "done")
    (quit "quit")
    (error (error-message-string failure))))

(defun t-insert (text)
  (save-excursion (goto-char (point-min)) (insert text))
  (save-buffer)
  t)

(defun t-ask (form)
  "The value of FORM in the frame's buffer, as JSON."
  (with-selected-window (frame-selected-window
                         (seq-find (lambda (frame) (frame-parameter frame 'tty)) (frame-list)))
    (json-encode (eval form t))))
