package store

import (
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Life is what the screens keep of one message.
type Life struct {
	machine.Message
	Title string            // the name of its type
	Cause string            // why it was sent again, according to a rule; empty if unknown
	Sure  machine.Certainty // how sure Cause is
}

// explainResends sets the causes of resends. It takes them from the findings of
// the record in which the messages' lives ended.
func explainResends(lives []Life, anomalies []machine.Anomaly) {
	for i := range anomalies {
		a := &anomalies[i]
		if a.Rule.Resend == "" {
			continue
		}
		for j := range lives {
			if x := &lives[j]; x.From == a.Side && x.Attempts > 1 && x.Frames[0] == a.About {
				x.Cause, x.Sure = strings.ReplaceAll(a.Rule.Resend, "-", " "), a.Certainty
			}
		}
	}
}

// AppendLives appends the messages whose lives end in a record, without their
// bytes.
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
			x.Title = x.TypeText()
		}
		x.Body, x.Data = nil, nil
		to = append(to, x)
	}
	explainResends(to[from:], r.Anomalies)
	return to
}

// Latency returns the time from the first copy to the delivery. It returns -1
// for a message that was not delivered.
func (x *Life) Latency() time.Duration {
	if x.Delivered != machine.Yes {
		return -1
	}
	return x.DeliveredAt.Sub(x.At)
}
