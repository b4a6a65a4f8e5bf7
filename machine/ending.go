package machine

// Ending is how a connection ended, as far as its packets show it.
type Ending uint8

const (
	EndingUnknown    Ending = iota // it goes on, or nothing shows how it ended
	EndingUnanswered               // the client asked and had no answer: there was no connection
	EndingExpired                  // the same, and its connect token had expired
	EndingDenied                   // the server refused the client
	EndingDisconnect               // a side said goodbye
	EndingTimeout                  // a side fell silent
)

var endingWords = [...]string{"unknown", "no answer", "token expired", "denied", "disconnect", "timeout"}

// Endings is how many endings there are.
// Source: name, the words of the endings
const Endings = len(endingWords)

// String returns the words that output uses.
func (e Ending) String() string {
	if int(e) < len(endingWords) {
		return endingWords[e]
	}
	return endingWords[EndingUnknown]
}
