package article

import wire "github.com/ackscope/ackscope/wire/gaffer"

// link is one connection as one of its sides knows it. Its methods are the only
// transitions of the handshake. Both the reference (Connection) and the tracker
// (ConnectionTracker) drive them.
//
//	client  none → requesting → responding → connected → none
//	server  none → challenging → connected → none
//
// For example, a client that is requesting reads a challenge. It is then responding,
// and knows the server's salt.
type link struct {
	state          linkState
	client, server uint64 // salts; the XOR of both would prefix payloads
}

type linkState uint8

const (
	linkNone        linkState = iota
	linkRequesting            // client: has sent a request
	linkResponding            // client: was challenged
	linkChallenging           // server: has sent a challenge
	linkConnected
)

var linkWords = [...]string{"none", "requesting", "responding", "challenging", "connected"}

func (s linkState) String() string { return linkWords[s] }

// linkStep is what a packet of the peer means to a side.
type linkStep uint8

const (
	stepIgnored    linkStep = iota // of another connection, or out of its turn
	stepHeard                      // the peer is alive, and nothing else changes
	stepAsked                      // server: a client asks for a connection
	stepAskedAgain                 // server: the client that was challenged asks again
	stepAskedOther                 // server: a connected client asks under another salt
	stepAnswered                   // server: the client that was challenged answers
	stepChallenged                 // client: it is challenged
	stepConnected                  // client: the connection is made
	stepRefused                    // client: the server denies the connection
	stepEnded                      // the peer ends the connection
)

// request begins a client's attempt under a new salt.
func (l *link) request(client uint64) { *l = link{state: linkRequesting, client: client} }

// challenge begins a server's link to a client that asked, under a new salt. It uses no
// slot, so forged addresses fill none.
func (l *link) challenge(client, server uint64) {
	*l = link{state: linkChallenging, client: client, server: server}
}

// admit gives a slot to a client that has answered its challenge.
func (l *link) admit() { l.state = linkConnected }

// read applies a packet of the peer.
func (l *link) read(server bool, p *wire.Packet) linkStep {
	if server {
		return l.serverReads(p)
	}
	return l.clientReads(p)
}

// serverReads applies a client's packet. What a server decides is left to its owner:
// after stepAsked, to challenge or to deny; after stepAnswered, to admit or to deny.
func (l *link) serverReads(p *wire.Packet) linkStep {
	if p.Handshake == wire.ConnectRequest {
		switch {
		case l.state == linkConnected && l.client != p.ClientSalt:
			return stepAskedOther
		case l.state == linkConnected:
			return stepIgnored
		case l.state == linkChallenging && l.client == p.ClientSalt:
			return stepAskedAgain
		}
		return stepAsked
	}
	if l.state < linkChallenging || l.client != p.ClientSalt || l.server != p.ChallengeSalt {
		return stepIgnored
	}
	switch p.Handshake {
	case wire.ConnectResponse:
		if l.state == linkChallenging {
			return stepAnswered
		}
		return stepHeard
	case wire.ConnectKeepAlive:
		return stepHeard
	case wire.ConnectDisconnect:
		if l.state == linkConnected {
			return stepEnded
		}
	}
	return stepIgnored
}

// clientReads applies the server's packet.
func (l *link) clientReads(p *wire.Packet) linkStep {
	if l.state == linkNone || p.ClientSalt != l.client {
		return stepIgnored
	}
	switch p.Handshake {
	case wire.ConnectDenied:
		if l.state != linkConnected {
			return stepRefused
		}
	case wire.ConnectChallenge:
		if l.state == linkRequesting {
			l.state, l.server = linkResponding, p.ChallengeSalt
			return stepChallenged
		}
	case wire.ConnectKeepAlive:
		switch {
		case p.ChallengeSalt != l.server || l.state == linkRequesting:
		case l.state == linkResponding:
			l.state = linkConnected
			return stepConnected
		default:
			return stepHeard
		}
	case wire.ConnectDisconnect:
		if p.ChallengeSalt == l.server && l.state == linkConnected {
			return stepEnded
		}
	}
	return stepIgnored
}
