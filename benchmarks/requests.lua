-- Sends the requests of a file; prints the figures of the run as a line of JSON.
--
-- Arguments: the file, `random` or the index of the first request, and a token for request ids.
-- The first line of the file has the headers of every request; each other line has a path and the
-- headers of one request. Tabs separate the fields. `random` draws requests; an index sends them
-- in order. Each request has an X-Request-Id of its own.

local requests, order, index, id = {}, "random", 0, 100000000000

local function join_headers(fields)
  local lines = {}
  for header in fields:gmatch("[^\t]+") do
    lines[#lines + 1] = header .. "\r\n"
  end
  return table.concat(lines)
end

function init(args)
  local lines = io.lines(args[1])
  local shared = join_headers(lines())
  for line in lines do
    local path, own = line:match("^([^\t]*)\t?(.*)$")
    requests[#requests + 1] = "GET " .. path .. " HTTP/1.1\r\n" .. shared .. join_headers(own)
      .. "X-Request-Id: " .. args[3]
  end
  order = args[2]
  index = tonumber(order) or 0
  math.randomseed(os.time())
end

function request()
  if order == "random" then
    index = math.random(#requests)
  else
    index = index % #requests + 1
  end
  id = id + 1
  return requests[index] .. id .. "\r\n\r\n"
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "duration": %d, "bytes": %d, "p50": %.1f, "p99": %.1f, '
      .. '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout
  ))
end
