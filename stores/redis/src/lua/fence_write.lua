-- Commands, each with the number of its words before it.
local answers, at = {}, 3
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local answer = redis.pcall(unpack(ARGV, at + 1, at + count))
  if type(answer) == 'table' and answer.err then
    still_fences()
    return { 'failed', now, #answers + 1, answer.err }
  end
  answers[#answers + 1] = answer or false
  at = at + count + 1
end
return admitted(answers)
