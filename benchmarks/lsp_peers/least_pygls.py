"""The least pygls server: constant answers. What any server made with pygls cannot be faster than."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("least", "0")


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params):
    return types.Hover(contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value="**12.3 ms** 45 %"))


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
def hints(params):
    lines = range(params.range.start.line, params.range.end.line)
    return [
        types.InlayHint(position=types.Position(line=line, character=20), label="12.3 ms") for line in lines
    ]


@server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
def actions(params):
    return [types.CodeAction(title="Do it", kind=types.CodeActionKind.QuickFix)]


server.start_io()
