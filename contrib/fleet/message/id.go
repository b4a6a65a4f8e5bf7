package message

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/printable"
)

// ID names one row for good. The hub drops a second message with the id of an earlier one.
type ID struct {
	Sensor string
	Epoch  string // one run of the sensor
	Seq    uint64 // from 1, without gaps, for each kind of an epoch
}

// Header is the header that holds the id. The hub compares it.
const Header = "Nats-Msg-Id"

const (
	epochBytes = 16
	// MostSeq is the largest sequence number. Every JSON reader keeps it exactly.
	MostSeq = 1<<53 - 1
)

// NewEpoch returns the name of a new run: its time, so that epochs sort, and 80 random bits. So no other sensor can
// use its ids before it does.
func NewEpoch(now time.Time) (string, error) {
	var b [epochBytes]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	if _, err := rand.Read(b[6:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}

// String returns the id as the header holds it.
func (i ID) String() string { return i.Sensor + "." + i.Epoch + "." + strconv.FormatUint(i.Seq, 10) }

// ParseID is the inverse of String.
func ParseID(text string) (ID, error) {
	wrong := fmt.Errorf("message id: expected SENSOR.EPOCH.SEQUENCE, found %s", Quoted(text))
	tokens := strings.Split(text, ".")
	if len(text) > MostName+2*epochBytes+24 || len(tokens) != 3 {
		return ID{}, wrong
	}
	id := ID{Sensor: tokens[0], Epoch: tokens[1]}
	if CheckName("sensor", id.Sensor) != nil || !isEpoch(id.Epoch) {
		return ID{}, wrong
	}
	var err error
	id.Seq, err = strconv.ParseUint(tokens[2], 10, 64)
	if err != nil || id.Seq == 0 || id.Seq > MostSeq || id.String() != text {
		return ID{}, wrong
	}
	return id, nil
}

func isEpoch(text string) bool {
	if len(text) != 2*epochBytes {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Quoted quotes what was found in a message, so that it can be shown: no control characters, and not too long.
func Quoted(text string) string {
	const most = 80 // characters of a line that also says what was expected
	more := ""
	if len(text) > most {
		text, more = text[:most], "…"
	}
	return `"` + printable.String(text) + more + `"`
}
