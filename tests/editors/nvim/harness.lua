-- Loaded into Neovim after the page's snippet: what the test asks for, as JSON.
T = { progress = {}, offered = nil }
-- What to choose in a menu. A profile asked for while the one before is still ending is asked about by the server.
T.wanted = "Wait for it"

vim.o.cmdheight = 4 -- a message of more than a line must not wait for a key
vim.o.swapfile = false

vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    local value = event.data.params.value
    table.insert(T.progress, { kind = value.kind, message = value.message or "", title = value.title or "" })
  end,
})

-- Any menu: remember what it offers, choose by title.
vim.ui.select = function(items, options, choose)
  local format = options and options.format_item or tostring
  T.offered = vim.tbl_map(format, items)
  for index, title in ipairs(T.offered) do
    if T.wanted and title:find(T.wanted, 1, true) then return choose(items[index], index) end
  end
  choose(nil, nil)
end

function T.attached() return #vim.lsp.get_clients({ name = "warpline", bufnr = 0 }) > 0 end

function T.hints()
  local found = {}
  for _, entry in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do
    local hint = entry.inlay_hint
    local label = hint.label
    if type(label) == "table" then
      label = table.concat(vim.tbl_map(function(part) return part.value end, label))
    end
    table.insert(found, { hint.position.line + 1, label })
  end
  return found
end

function T.lenses()
  if vim.lsp.codelens.enable then vim.lsp.codelens.enable(true, { bufnr = 0 }) else vim.lsp.codelens.refresh() end
  local found = {}
  for _, entry in ipairs(vim.lsp.codelens.get({ bufnr = 0 })) do
    local lens = entry.lens or entry
    table.insert(found, { lens.range.start.line + 1, lens.command and lens.command.title or "" })
  end
  return found
end

function T.diagnostics()
  return vim.tbl_map(function(entry) return { entry.lnum + 1, entry.code or "" } end, vim.diagnostic.get(0))
end

function T.hover(line, column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  vim.lsp.buf.hover()
end

function T.float()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), "\n")
    end
  end
  return ""
end

function T.actions(line, wanted)
  T.wanted, T.offered = wanted, nil
  vim.api.nvim_win_set_cursor(0, { line, 4 })
  vim.lsp.buf.code_action()
end

function T.insert(lines) vim.api.nvim_buf_set_lines(0, 0, 0, false, lines) end
function T.command(text) vim.cmd(text) end
function T.get(name) return T[name] end

-- The one way in: a function's name and its arguments as JSON, its result as JSON.
function T.call(asked)
  local request = vim.json.decode(asked)
  local result = T[request[1]](unpack(request, 2))
  if result == nil then result = vim.NIL end
  return vim.json.encode(result)
end
