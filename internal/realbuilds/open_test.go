package realbuilds

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// The items of issue 21 that demand what is still wrong.
const (
	restarted = "honest builds 2: a restart"
	vantage   = "bugs that pass 5: the vantage falls to between"
	wrapped   = "must show 1: cuts: at a wrap"
	inMiddle  = "must show 1: cuts: Riptide joined in the middle"
	snapped   = "must show 1: snap lengths that cut headers or streams"
)

// open names what is still wrong, by capture: the item that demands the right
// answer. Such a capture must fail. Once it passes, its line is to be removed.
var open = map[string]string{
	"fragseq12.client to 133":      vantage,
	"fragseq12.client to 49":       vantage,
	"resetearly.client cut 18-300": restarted,
	"resetearly.server cut 43-300": restarted,
}

// mended names damaged captures that were wrong once. Every run of the tests has
// them.
var mended = []string{
	"221-gap.client cut 2908-5841",
	"221-gap.client cut 3739-4323",
	"221-gap.client drop 861048",
	"221-gap.server cut 1142-1586",
	"221-gap.server cut 547-5773",
	"221-gap.server drop 941199",
	"clean3.client cut 1504-1661",
	"clean3.server cut 693-1679",
	"head-loss.client cut 10-593",
	"head-loss.server cut 8-318",
	"plain-be-clean.client snap 54",
	"plain-le-loss20-reorder.client drop 298818",
	"rel12.client cut 499-998",
	"rel12.client cut 789-998",
	"rel12.client cut 857-998",
	"rel12.client drop 292026",
	"rel12.client snap 47",
	"rel12.server cut 2-360",
	"rel12.server cut 256-1006",
	"rel12.server cut 714-1006",
	"rel12.server drop 24096",
	"rel12.server snap 61",
	"reliable-dup10.server drop 846926",
	"reliable-jitter80.server cut 2433-2446",
	"reliable-loss40.client snap 52",
	"reliable-sparse-acks.server cut 22-1177",
	"reliable-wrap-slow.client cut 1479-2890",
	"rely.client cut 260-276",
	"rely.client cut 592-932",
	"rely.client cut 901-932",
	"rely.server cut 446-675",
	"rely.server cut 754-924",
	"resetboth.client drop 568170",
	"resetclient.client cut 425-1691",
	"resetclient.client cut 458-1691",
	"resetclient.client cut 636-1691",
	"resetclient.client drop 504222",
	"resetclient.client snap 137",
	"resetclient.server cut 252-1694",
	"resetclient.server cut 543-1694",
	"resetclient.server drop 688234",
	"resetearly.client cut 58-300",
	"resetserver.server cut 358-397",
	"t210_clean.client snap 121",
	"t210_rechunk.client snap 138",
	"t210_rechunk.client snap 141",
	"t210_rechunk.client snap 74",
	"t21n_small_mss.client drop 796550",
	"t221_clean.client snap 103",
	"tpy_clean.client snap 107",
	"tpy_rechunk.client cut 252-933",
	"tpy_rechunk.client cut 8-933",
	"tpy_rechunk.client snap 127",
	"u200_loss15.server cut 360-376",
	"u210_connect_retry.client snap 46",
	"u210_dup.client cut 60-159",
	"u210_dup.server cut 215-265",
	"u210_falseack.client cut 1512-1872",
	"u210_falseack.client cut 1564-1905",
	"u210_falseack.client cut 507-1037",
	"u210_lobby.client cut 102-839",
	"u210_lobby.server cut 18-839",
	"u210_lobby.server cut 426-839",
	"u210_lobby.server cut 8-48",
	"u210_lobby.server drop 118622",
	"u212_lobby.server snap 48",
	"u21d_gap64.client cut 92-2778",
	"u21d_loss15.server cut 205-368",
	"u221_clean.server cut 4-683",
	"u221_lobby.client cut 26-377",
	"upy_cs221_server.server drop 212333",
	"upy_gap.server snap 47",
}

// openCauses names what is still wrong with captures that are damaged at random.
// The field words matches the capture's name and the sentence about it. The field
// item demands the right answer. A case that matches none of these fails the test.
var openCauses = []struct {
	words *regexp.Regexp
	item  string
}{
	{regexp.MustCompile("^reset|^simulated .*[12] restarts"), restarted},
	{regexp.MustCompile(" snap "), snapped},
	{regexp.MustCompile("^[tu]2.* cut .*: (sequence|resend-after-ack), likely"), inMiddle},
	{regexp.MustCompile("-wrap.* cut .*: (ack-omitted|finding ack-going-back)"), wrapped},
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
