"""Replacements that can be tried without the script: the questions, and the change that follows from the
answers.

``questions(profile, change)`` is what has to be tried for a change, and ``informed(profile, change,
answers)`` the change with their results. Both are pure; :mod:`warpline.capture.probing` does the trying.
"""

from warpline.probing.changes import (
    Answers,
    by_question,
    compiling_s,
    informed,
    not_compiling,
    questions,
    undecided,
)

__all__ = ["Answers", "by_question", "compiling_s", "informed", "not_compiling", "questions", "undecided"]
