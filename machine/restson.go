package machine

// RestsOn is the evidence without which a divergence would not be one. It is a set:
// the same divergence can rest on the peer's numbers and on an absence.
//
// Each reason for a divergence has its own. Take a side that was expected to send
// packet 7. If it sends packet 9, two packets are missing: the capture may lack them,
// so this rests on an absence. If it sends packet 5, no missing packet explains that.
type RestsOn uint8

const (
	// RestsOnOwn is set alone: what the side sent contradicts itself, or what it sent
	// before.
	RestsOnOwn RestsOn = 1 << iota
	// RestsOnPeer is set where the reason takes for true what the peer's packets say:
	// their numbers, what they ack, what they ask for. A peer that is wrong in these
	// explains the divergence.
	RestsOnPeer
	// RestsOnAbsence is set where the reason needs that some packet did not pass the
	// tap. A capture that lacks this packet shows the same.
	RestsOnAbsence

	// RestsOnBoth is the peer's numbers and an absence together.
	RestsOnBoth = RestsOnPeer | RestsOnAbsence
)

// restsOnWords are the words of `rests_on` in JSON, by bit.
var restsOnWords = [...]string{"own", "peer", "absence"}

// Peer reports whether a peer that is wrong explains the divergence.
func (r RestsOn) Peer() bool { return r&RestsOnPeer != 0 }

// Absence reports whether a capture that lacks a packet shows the same.
func (r RestsOn) Absence() bool { return r&RestsOnAbsence != 0 }

// Words returns the word that JSON has for each member of the set: own, peer, absence.
func (r RestsOn) Words() (words []string) {
	for i, word := range restsOnWords {
		if r>>i&1 == 1 {
			words = append(words, word)
		}
	}
	return words
}
