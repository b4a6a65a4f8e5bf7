package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Life is what is kept of a message.
type Life struct {
	machine.Message
	Title string            // the name of its type
	Cause string            // why it was sent again, as a rule tells it; empty for unknown
	Sure  machine.Certainty // that this is why
}

// resendCause returns the cause that a rule names of a message that was sent again,
// in words: the rules that tell it are named …resent-CAUSE or …spurious-CAUSE.
func resendCause(r *machine.Rule) (string, bool) {
	if _, cause, ok := strings.Cut(r.ID, "resent-"); ok {
		return strings.ReplaceAll(cause, "-", " "), true
	}
	if _, cause, ok := strings.Cut(r.ID, "spurious-"); ok {
		return "needless, " + strings.ReplaceAll(cause, "-", " "), true
	}
	return "", false
}

// explainResends gives the messages whose lives end in a record the causes that
// it tells of their resends.
func explainResends(lives []Life, anomalies []machine.Anomaly) {
	for i := range anomalies {
		a := &anomalies[i]
		cause, ok := resendCause(a.Rule)
		if !ok {
			continue
		}
		for j := range lives {
			if x := &lives[j]; x.From == a.Side && x.Attempts > 1 && x.Frames[0] == a.About {
				x.Cause, x.Sure = cause, a.Certainty
			}
		}
	}
}

// AppendLives adds the messages whose lives end in a record, without their bytes.
func AppendLives(to []Life, r *analyze.Record) []Life {
	from := len(to)
	for i := range r.Messages {
		x := Life{Message: r.Messages[i]}
		if say := r.Flow.Protocol.Message; say != nil {
			x.Title, _ = say(r.Flow.Config(), &r.Messages[i])
		}
		if x.Name != "" {
			x.Title = x.Name
		}
		if x.Title == "" {
			x.Title = fmt.Sprintf("type %d", x.Type)
		}
		x.Body, x.Data = nil, nil
		to = append(to, x)
	}
	explainResends(to[from:], r.Anomalies)
	return to
}

// Latency is the time from the first send to the delivery; negative where there
// was none.
func (x *Life) Latency() time.Duration {
	if x.Delivered != machine.Yes {
		return -1
	}
	return x.DeliveredAt.Sub(x.At)
}
