package analyze

import "github.com/ackscope/ackscope/capture"

// router gives each pair of hosts a shard: the first pairs so that all shards have as many frames,
// later ones by chance.
type router struct {
	capture *capture.Router
	shards  int
	known   map[uint64]uint8
	cache   [1 << routerBits]routed
	load    [maxShards]uint64 // frames so far
}

// routed is an entry of the cache in front of the map.
type routed struct {
	pair  uint64
	shard uint8
}

const (
	routerBits = 8
	// routerPairs bounds the pairs that get the shard with the fewest frames.
	// Source: bound, 64 kB for the map
	routerPairs = 1 << 11
)

func (r *router) begin(o capture.DecodeOptions, shards int) {
	r.capture, r.shards, r.known = capture.NewRouter(o), shards, map[uint64]uint8{}
}

// shardOf returns the shard of a frame. quotes says that the frame concerns flows of any shard.
func (r *router) shardOf(f *capture.Frame) (shard uint8, quotes bool) {
	if r.shards == 1 {
		return 0, false
	}
	pair, quotes := r.capture.Route(f)
	if pair == 0 {
		return 0, quotes
	}
	x := &r.cache[pair>>(64-routerBits)]
	if x.pair != pair {
		*x = routed{pair, r.find(pair)}
	}
	r.load[x.shard]++
	return x.shard, quotes
}

// find returns the shard of a pair that is not in the cache.
func (r *router) find(pair uint64) uint8 {
	if shard, ok := r.known[pair]; ok {
		return shard
	}
	if len(r.known) == routerPairs {
		return uint8(pair >> 32 % uint64(r.shards))
	}
	shard := uint8(0)
	for i := range r.shards {
		if r.load[i] < r.load[shard] {
			shard = uint8(i)
		}
	}
	r.known[pair] = shard
	return shard
}
