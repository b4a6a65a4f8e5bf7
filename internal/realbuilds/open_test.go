package realbuilds

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// The items of issue 21 that demand what is still wrong.
const (
	joined     = "honest builds 1: a judge that joins in the middle"
	restarted  = "honest builds 2: a restart"
	overtaking = "honest builds 3: overtaking where a cut begins"
	counts     = "honest builds 5: counts that cannot be"
	emptyLast  = "bugs that pass 1: an empty last fragment"
	died       = "bugs that pass 4: a connection that died"
	tooWeak    = "bugs that pass 6: likely where it is certain"
	handedOver = "facts 2 and 4: reliable before 1.3 hands duplicates over"
	port       = "facts 4: the port rely"
	inMiddle   = "must show 1: cuts: Riptide joined in the middle"
	orIDs      = "must show 1: cuts: ids OR-ed by Riptide 2.1.0"
	misread    = "must show 1: cuts: Riptide taken for another protocol"
	dropped    = "must show 1: drops: a certain accusation"
	snapped    = "must show 1: snap lengths that cut headers or streams"
)

// open names what is still wrong, by capture: the item that demands the right
// answer. Such a capture must fail. Once it passes, its line is to be removed.
var open = map[string]string{
	"resetclient.client": restarted,
	"fragcount14.client": emptyLast,
	"fragcount14.server": emptyLast,
	"wrap1b.client":      died,
	"wrap1b.server":      died,
	"rel12.client":       handedOver,
	"rel12.server":       handedOver,
	"rely.client":        port,
	"rely.server":        port,
	"delta7.client":      tooWeak,
	"ripR1.client":       tooWeak,

	"clean9.client.cut18":  joined,
	"clean5.client.drop14": joined,

	"simulated 1": restarted,
	"simulated 8": restarted,

	"resetclient.client cut 458-1691":         restarted,
	"resetclient.client cut 425-1691":         restarted,
	"resetclient.client drop 504222":          restarted,
	"resetclient.server drop 688234":          restarted,
	"resetclient.client snap 137":             restarted,
	"resetclient.server cut 252-1694":         restarted,
	"resetclient.server cut 543-1694":         restarted,
	"clean3.client cut 1504-1661":             overtaking,
	"clean3.server cut 693-1679":              overtaking,
	"reliable-jitter80.server cut 2433-2446":  overtaking,
	"reliable-sparse-acks.server cut 22-1177": overtaking,
	"rel12.server cut 2-360":                  overtaking,
	"221-gap.client cut 2908-5841":            counts,
	"221-gap.client cut 3739-4323":            counts,
	"221-gap.server cut 1142-1586":            counts,
	"221-gap.client drop 861048":              counts,
	"221-gap.server drop 941199":              counts,
	"rel12.client cut 857-998":                handedOver,
	"rel12.server cut 256-1006":               handedOver,
	"rel12.client cut 789-998":                handedOver,
	"rel12.client cut 499-998":                handedOver,
	"rel12.server cut 714-1006":               handedOver,
	"rel12.client drop 292026":                handedOver,
	"rel12.server drop 24096":                 handedOver,
	"rel12.server snap 61":                    handedOver,
	"u221_clean.server cut 4-683":             inMiddle,
	"u210_dup.client cut 60-159":              inMiddle,
	"u221_lobby.client cut 26-377":            inMiddle,
	"head-loss.server cut 8-318":              inMiddle,
	"u210_falseack.client cut 507-1037":       inMiddle,
	"221-gap.server cut 547-5773":             inMiddle,
	"u210_lobby.client cut 102-839":           orIDs,
	"u210_lobby.server drop 118622":           orIDs,
	"u21d_loss15.server cut 205-368":          misread,
	"upy_cs221_server.server drop 212333":     dropped,
	"t21n_small_mss.client drop 796550":       dropped,
	"rel12.client snap 47":                    snapped,
	"plain-be-clean.client snap 54":           snapped,
	"reliable-loss40.client snap 52":          snapped,
	"t221_clean.client snap 103":              snapped,
}

// openCauses names what is still wrong with captures that are damaged at random.
// The field words matches the capture's name and the sentence about it. The field
// item demands the right answer. A case that matches none of these fails the test.
var openCauses = []struct {
	words *regexp.Regexp
	item  string
}{
	{regexp.MustCompile("^resetclient|^simulated .*[12] restarts"), restarted},
	{regexp.MustCompile("packets could not be decided"), counts},
	{regexp.MustCompile("refused as a duplicate"), handedOver},
	{regexp.MustCompile(" snap "), snapped},
	{regexp.MustCompile(": ack-withdrawn"), joined},
	{regexp.MustCompile("^u.*(ack-forgotten|ack-without-bit)"), misread},
	{regexp.MustCompile(": sequence-reuse"), orIDs},
	{regexp.MustCompile("cut .*: (ack-unsent|ack-never-arrived)"), overtaking},
	{regexp.MustCompile("cut .*: (sequence|ack|ack-unasked|type|resend-late|rtt),"), inMiddle},
	{regexp.MustCompile("drop .*: (resend-early|unreadable), certain"), dropped},
}

// causeOf returns the item under which a sentence is open; "" for none.
func causeOf(sentence string) string {
	for _, c := range openCauses {
		if c.words.MatchString(sentence) {
			return c.item
		}
	}
	return ""
}

// report fails the test for each case that is under no open item, and lists the
// others. The cases are by item.
func report(t *testing.T, found map[string][]string) {
	t.Helper()
	for _, item := range slices.Sorted(maps.Keys(found)) {
		cases := found[item]
		slices.Sort(cases)
		if item == "" {
			for _, c := range cases {
				t.Error(c)
			}
			continue
		}
		t.Logf("open: %s: %d cases, such as %s", item, len(cases), cases[0])
	}
}
