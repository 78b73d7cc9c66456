-- The table `wrk` as scripts expect it. `lookup` and `connect` are put in from outside, as are the parts of the URL and headers.
local wrk = {
   scheme = "http",
   host = "localhost",
   port = nil,
   method = "GET",
   path = "/",
   headers = {},
   body = nil,
   thread = nil,
}

local concat, length = table.concat, string.len

-- Fields of one name in other letters are the same field: a second Host would be refused by servers.
local function named(headers, wanted)
   for name, value in pairs(headers) do
      if value and type(name) == "string" and name:lower() == wanted then return true end
   end
   return false
end

-- The addresses that can be connected to, in their order.
function wrk.resolve(host, service)
   local reached = {}
   for _, addr in ipairs(wrk.lookup(host, service)) do
      if wrk.connect(addr) then reached[#reached + 1] = addr end
   end
   wrk.addrs = reached
end

function wrk.setup(thread)
   thread.addr = wrk.addrs[1]
   if type(setup) == "function" then setup(thread) end
end

function wrk.init(args)
   if not named(wrk.headers, "host") then
      local host = wrk.host
      if host:find(":", 1, true) then host = "[" .. host .. "]" end
      if wrk.port then host = host .. ":" .. wrk.port end
      wrk.headers["Host"] = host
   end
   if type(init) == "function" then init(args) end
   local static = wrk.format()
   wrk.request = function() return static end
end

-- As wrk does it, the table of headers that is given is completed, and keeps what was added.
function wrk.format(method, path, headers, body)
   method = method or wrk.method
   path = path or wrk.path
   headers = headers or wrk.headers
   body = body or wrk.body
   -- Whoever called it is told, and not this line.
   if type(headers) ~= "table" then error("wrk.format() wants a table of headers, got a " .. type(headers), 2) end
   if body and type(body) ~= "string" and type(body) ~= "number" then
      error("wrk.format() wants a text as body, got a " .. type(body), 2)
   end
   if not headers["Host"] and not named(headers, "host") then
      headers["Host"] = wrk.headers["Host"]
   end
   -- A body may be a number: its digits are sent.
   headers["Content-Length"] = body and length(body)
   local lines = { tostring(method) .. " " .. tostring(path) .. " HTTP/1.1" }
   local count = 1
   for name, value in pairs(headers) do
      count = count + 1
      lines[count] = tostring(name) .. ": " .. tostring(value)
   end
   lines[count + 1] = ""
   lines[count + 2] = body or ""
   return concat(lines, "\r\n")
end

return wrk
