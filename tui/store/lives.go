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

// Took returns the estimate of the time from the first sending to the arrival. It returns -1
// where that is not known.
func (x *Life) Took() time.Duration {
	if x.Delivered != machine.Yes {
		return -1
	}
	return x.About()
}

// Extent returns the time from the first copy to the end of what is known of the message.
func (x *Life) Extent() (d time.Duration) {
	switch {
	case x.Delivered != machine.Yes:
	case x.Arrived.Known():
		d = x.Arrived.To.Sub(x.At)
	default:
		d = x.DeliveredAt.Sub(x.At) // the proof of the delivery, which is later
	}
	if x.AckedBy != 0 {
		d = max(d, x.AckedAt.Sub(x.At))
	}
	return d
}
