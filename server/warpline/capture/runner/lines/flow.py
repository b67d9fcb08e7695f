"""Where in a code object control may come from: which line events tell nothing that is not known."""

import dis

_NO_FALL_THROUGH = ("RETURN_", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


def came_from(code):
    """``{offset: lines}`` for each instruction: the lines of all that may come before it.

    A line is None where it cannot be told: at the start, in an exception's handler, after an
    instruction without a line. Python 3.12 and newer.
    """
    before, line, falls = {}, None, False
    for at in dis.get_instructions(code):
        before.setdefault(at.offset, set())
        if falls or at.offset == 0:
            before[at.offset].add(line)
        line = at.positions.lineno if at.positions is not None else None
        falls = not at.opname.startswith(_NO_FALL_THROUGH)
        if at.opcode in dis.hasjrel or at.opcode in dis.hasjabs:
            before.setdefault(at.argval, set()).add(line)
    for entry in dis._parse_exception_table(code):
        before.setdefault(entry.target, set()).add(None)
    return before


def starts_of(code, lines):
    """``{offset: line}``: the first instruction of each of ``lines``, wherever control may enter it."""
    starts, before = {}, None
    for at in dis.get_instructions(code):
        line = at.positions.lineno if at.positions is not None else None
        if line in lines and (line != before or at.is_jump_target):
            starts[at.offset] = line
        before = line
    return starts


def loops(code, lines):
    """What need not be recorded when nothing but Python happens on ``lines`` of ``code``.

    A list of ``(offsets, lines)``: line events at ``offsets`` come from those lines and lead to them,
    so while they are left out, the last line recorded is always one of those too.
    """
    origins, starts = came_from(code), starts_of(code, lines)
    inner = {
        offset: line for offset, line in starts.items() if origins[offset] and origins[offset] <= set(lines)
    }
    groups = []  # (offsets, lines)
    for offset, line in inner.items():
        offsets, joined, apart = {offset}, {line, *origins[offset]}, []
        for group in groups:
            if group[1] & joined:
                offsets, joined = offsets | group[0], joined | group[1]
            else:
                apart.append(group)
        groups = [*apart, (offsets, joined)]
    return groups
