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
-- What a script has raised. It may have written before, which the words that it chose do not tell: sent as it is, one of them
-- would have it run once more.
local function raised(problem)
  if type(problem) == 'table' and type(problem.err) == 'string' then return problem.err end
  return tostring(problem)
end
