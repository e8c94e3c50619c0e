-- The first error within what a script answers with, however deep it is. Sent as it is, it would be taken for a refusal by the
-- server, before anything was written.
local function failure(answer)
  if type(answer) ~= 'table' then return nil end
  if type(answer.err) == 'string' then return answer.err end
  for _, part in pairs(answer) do
    local found = failure(part)
    if found then return found end
  end
end
