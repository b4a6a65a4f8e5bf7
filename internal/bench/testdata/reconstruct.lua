-- What a studio would write in an afternoon to see its acks in tshark: a
-- dissector of the article's 8-byte header on one port, and a tap that
-- rebuilds, for each flow and side, what was missing, acked and lost, and the round trips.
--   tshark -q -X lua_script:reconstruct.lua -r FILE
local proto = Proto("packetacks", "Packet acks")
local F = {
  sequence = ProtoField.uint16("packetacks.sequence", "Sequence"),
  ack = ProtoField.uint16("packetacks.ack", "Ack"),
  bits = ProtoField.uint32("packetacks.bits", "Ack bits", base.HEX),
  payload = ProtoField.bytes("packetacks.payload", "Payload"),
}
proto.fields = F

function proto.dissector(buffer, pinfo, tree)
  if buffer:len() < 8 then return 0 end
  pinfo.cols.protocol = "ACKS"
  local branch = tree:add(proto, buffer())
  branch:add_le(F.sequence, buffer(0, 2))
  branch:add_le(F.ack, buffer(2, 2))
  branch:add_le(F.bits, buffer(4, 4))
  if buffer:len() > 8 then branch:add(F.payload, buffer(8)) end
  return buffer:len()
end
DissectorTable.get("udp.port"):add(40000, proto)

local get_sequence = Field.new("packetacks.sequence")
local get_ack = Field.new("packetacks.ack")
local get_bits = Field.new("packetacks.bits")
local band, lshift = bit.band, bit.lshift
local WINDOW = 1024

local sides = {} -- by "from>to"
local function side(from, to)
  local key = from .. ">" .. to
  local s = sides[key]
  if not s then
    s = { packets = 0, missing = 0, acked = 0, lost = 0, trips = 0, sequence = {}, at = {}, known = {} }
    sides[key] = s
  end
  return s
end

local tap = Listener.new("frame", "packetacks")
function tap.packet(pinfo)
  local sequence, ack, bits = get_sequence().value, get_ack().value, get_bits().value
  local from = tostring(pinfo.src) .. ":" .. pinfo.src_port
  local to = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
  local me, peer, now = side(from, to), side(to, from), pinfo.abs_ts

  me.packets = me.packets + 1
  if me.newest then
    local ahead = (sequence - me.newest) % 65536
    if ahead > 0 and ahead < 32768 then
      me.missing = me.missing + ahead - 1
      me.newest = sequence
    elseif ahead ~= 0 and me.missing > 0 then
      me.missing = me.missing - 1
    end
  else
    me.newest = sequence
  end
  local slot = sequence % WINDOW
  if me.sequence[slot] and not me.known[slot] then me.lost = me.lost + 1 end
  me.sequence[slot], me.at[slot], me.known[slot] = sequence, now, false

  for n = 0, 31 do
    if band(bits, lshift(1, n)) ~= 0 then
      local of = (ack - n) % 65536
      local i = of % WINDOW
      if peer.sequence[i] == of and not peer.known[i] then
        peer.known[i] = true
        peer.acked = peer.acked + 1
        peer.trips = peer.trips + (now - peer.at[i])
      end
    end
  end
end

function tap.draw()
  local packets, missing, acked, lost, trips = 0, 0, 0, 0, 0
  for _, s in pairs(sides) do
    packets, missing, acked = packets + s.packets, missing + s.missing, acked + s.acked
    lost, trips = lost + s.lost, trips + s.trips
  end
  print(string.format("packets=%d missing=%d acked=%d lost=%d rtt_ms=%.4f", packets, missing, acked, lost, trips / math.max(acked, 1) * 1000))
end
