-- Draws requests at random from a file: a path on each line, then headers, each after a tab as "name: value". Prints a line of JSON.

local requests = {}

function init(args)
  for line in io.lines(args[1]) do
    local path, rest = line:match("^([^\t]*)\t?(.*)$")
    local headers = { Host = "127.0.0.1" }
    for name, value in rest:gmatch("([^\t:]+): ([^\t]*)") do
      headers[name] = value
    end
    requests[#requests + 1] = wrk.format("GET", path, headers)
  end
  math.randomseed(1)
end

function request()
  return requests[math.random(#requests)]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "duration": %d, "bytes": %d, "p50": %.1f, "p99": %.1f, '
      .. '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout
  ))
end
