-- Written by ackscope: what it found in one capture, as fields and columns of
-- Wireshark and tshark. It reads no packet itself: what it tells is looked up by
-- the frame's number, so it belongs to that capture alone. Frames whose length is
-- another than there are left as they are, with a note.
--
--   wireshark -X lua_script:FILE CAPTURE
--   tshark -X lua_script:FILE -r CAPTURE -T fields -e frame.number -e ackscope.fate
--
-- Filters: ackscope.fate == "lost", ackscope.rtt > 80, ackscope.finding, and the
-- fields of the protocols by the names that ackscope's own filters have.
local made = select(1, ...)
local names = made.names
local proto = Proto("ackscope", "ackscope: what both sides knew")

local F = {}
local list = {}
local function field(key, f)
  F[key] = f
  list[#list + 1] = f
end
field("flow", ProtoField.uint32("ackscope.flow", "Flow"))
field("side", ProtoField.string("ackscope.side", "Sent by side"))
field("protocol", ProtoField.string("ackscope.protocol", "Protocol"))
field("dialect", ProtoField.string("ackscope.dialect", "Dialect"))
field("info", ProtoField.string("ackscope.info", "Info"))
field("sequence", ProtoField.int64("ackscope.sequence", "Sequence, unwrapped"))
field("fate", ProtoField.string("ackscope.fate", "Fate"))
field("certainty", ProtoField.string("ackscope.certainty", "Certainty of the fate"))
field("acked_in", ProtoField.framenum("ackscope.acked_in", "Acked in"))
field("rtt", ProtoField.double("ackscope.rtt", "RTT to its ack (ms)"))
field("acks", ProtoField.framenum("ackscope.acks", "Acks"))
field("resend_of", ProtoField.framenum("ackscope.resend_of", "Resend of"))
field("resent_in", ProtoField.framenum("ackscope.resent_in", "Sent again in"))
field("event", ProtoField.string("ackscope.event", "Event"))
field("finding", ProtoField.string("ackscope.finding", "Finding"))
field("severity", ProtoField.string("ackscope.severity", "Severity"))
local function hex(name, label) return ProtoField.uint64(name, label, base.HEX) end
local kinds = {
  x = hex, u = ProtoField.uint64, i = ProtoField.int64, d = ProtoField.double, b = ProtoField.bool, s = ProtoField.string, g = ProtoField.none,
}
local D = {}
for i, n in ipairs(names) do
  D[i] = { kind = n[3], field = kinds[n[3]](n[1], n[2]) }
  list[#list + 1] = D[i].field
end
proto.fields = list

local X = {
  error = ProtoExpert.new("ackscope.expert.error", "A fault of an endpoint", expert.group.SEQUENCE, expert.severity.ERROR),
  warn = ProtoExpert.new("ackscope.expert.warn", "Hurts the game", expert.group.SEQUENCE, expert.severity.WARN),
  note = ProtoExpert.new("ackscope.expert.note", "Good to know", expert.group.SEQUENCE, expert.severity.NOTE),
}
local other = ProtoExpert.new("ackscope.expert.other", "Another capture", expert.group.MALFORMED, expert.severity.WARN)
proto.experts = { X.error, X.warn, X.note, other }

local packets, facts = made.packets, made.facts

-- value reads a text as the kind of its field.
local function value(kind, text)
  if kind == "u" or kind == "x" then return UInt64.new(text) end
  if kind == "i" then return Int64.new(text) end
  if kind == "d" then return tonumber(text) end
  if kind == "b" then return text == "1" end
  return text
end
local reads = { flow = tonumber, acked_in = tonumber, acks = tonumber, resend_of = tonumber, resent_in = tonumber, rtt = tonumber, sequence = Int64.new }

local function add(tree, f, range, v)
  local item
  if range then item = tree:add(f, range, v) else
    item = tree:add(f, v)
    item:set_generated()
  end
  return item
end

function proto.dissector(tvb, pinfo, root)
  local p, x = packets[pinfo.number], facts[pinfo.number]
  if not p and not x then return end
  local tree = root:add(proto, tvb())
  if p and p[1] ~= 0 and p[1] ~= pinfo.len then
    tree:add_proto_expert_info(other, "frame " .. pinfo.number .. " has " .. pinfo.len .. " bytes, expected " .. p[1] .. ": this script was made for another capture")
    return
  end
  for k = 2, p and #p or 0 do
    for key, text in p[k]:gmatch("([%w_]+)\1([^\1\2]*)\2") do
      if F[key] then
        add(tree, F[key], nil, (reads[key] or tostring)(text))
      end
    end
    -- Fields of the protocol, as a tree: depth, number of the field, place, value.
    local parents = { [0] = tree }
    for depth, n, from, size, text in p[k]:gmatch("\3(%d+) (%d+) (%d+) (%d+)\1([^\1\2]*)\2") do
      local d, range = D[tonumber(n)], nil
      from, size, depth = tonumber(from), tonumber(size), tonumber(depth)
      if size > 0 and from + size <= tvb:len() then range = tvb(from, size) end
      local above = tree
      for at = depth, 0, -1 do
        if parents[at] then above = parents[at] break end
      end
      local item
      if d.kind == "g" then
        item = above:add(d.field, range or tvb(0, 0))
      else
        item = add(above, d.field, range, value(d.kind, text))
      end
      for at = depth + 1, #parents do parents[at] = nil end
      parents[depth + 1] = item
    end
  end
  for key, text in (x or ""):gmatch("([%w_]+)\1([^\1\2]*)\2") do
    local word, say = key:match("^finding_(%a+)$"), text
    if word then
      local rule, rest = text:match("^(%S+) (.*)$")
      add(tree, F.finding, nil, rule)
      local item = add(tree, F.severity, nil, word)
      item:add_proto_expert_info(X[word], rest)
    elseif F[key] then
      add(tree, F[key], nil, (reads[key] or tostring)(text))
    end
  end
end
register_postdissector(proto)
