package filter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/filter"
)

func TestErrors(t *testing.T) {
	table := testTable()
	for _, c := range []struct {
		filter  string
		column  int
		message string // part of it, including the suggestion
	}{
		{"toy.sequnce == 1", 1, "did you mean toy.sequence?"},
		{"toy.sequnce", 1, "did you mean toy.sequence?"},
		{"sequence > 5", 1, "did you mean toy.sequence?"},
		{"tpy.ack_bits", 1, "did you mean toy.ack_bits?"},
		{"udp.prot == 5", 1, "did you mean udp.port?"},
		{"nonsense_at_all", 1, `no field is named "nonsense_at_all"`},
		{"toy.sequence = 5", 14, "did you mean ==?"},
		{"toy | udp", 5, "did you mean ||?"},
		{"toy.sequence <> 5", 14, "did you mean !=?"},
		{"toy.sequence == ", 17, "found the end"},
		{"toy.sequence ==", 16, "found the end"},
		{"== 5", 1, `found the operator "=="`},
		{"toy &&", 7, "found the end"},
		{"toy udp", 5, "expected an operator"},
		{"(toy", 5, "expected )"},
		{"toy)", 4, ") without a ("},
		{"()", 2, "expected a field"},
		{"!", 2, "found the end"},
		{"toy.sequence == abc", 17, "expected an integer"},
		{"toy.sequence == -1", 17, "never negative"},
		{"toy.sequence == 1.5", 17, "expected an integer"},
		{"toy.sequence == 99999999999999999999", 17, "expected an integer"},
		{`toy.sequence == "5"`, 17, "expected an integer"},
		{"toy.sequence == 80ms", 17, "without ms"},
		{"toy.wait == 1kB", 13, "is in ms"},
		{"toy.wait == 100us", 13, "whole number of ms"},
		{"toy.kind == fragmnt", 13, "did you mean fragment?"},
		{"toy.flag == maybe", 13, "expected true or false"},
		{"toy.flag > 0", 12, "compare it with == or !="},
		{"toy.header == 1", 1, "has no value"},
		{"toy == 1", 1, "has no value"},
		{"toy.sequence == toy.header", 17, "has no value"},
		{"toy.sequence contains 5", 14, "string(toy.sequence)"},
		{"toy.sequence matches \"5\"", 14, "matches is for bytes and text"},
		{`toy.name matches "("`, 18, "not a regular expression: missing closing )"},
		{"toy.name matches abc", 18, `did you mean "abc"?`},
		{"toy.name matches toy.name", 18, "in quotes"},
		{"toy.name == 'ab'", 13, "holds one character"},
		{`toy.name == "abc`, 13, `closing "`},
		{`toy.name == "a\q"`, 15, "backslash"},
		{`toy.name == "a\xg1"`, 15, "hexadecimal"},
		{"toy.body == xy", 13, "expected bytes"},
		{"toy.body == 0a:", 13, "expected bytes"},
		{"toy.body[0:2 == 01:02", 9, "expected ]"},
		{"toy.body[x] == 1", 10, "found [x]"},
		{"toy.body[] == 1", 10, "expected [offset:length]"},
		{"toy.body[0:0] == 1", 10, "expected [offset:length]"},
		{"toy.body[3-1] == 1", 10, "expected [offset:length]"},
		{"toy.sequence[0] == 1", 13, "slices are of bytes"},
		{"toy.body ] == 1", 10, "] without a ["},
		{"ip.src == 300.1.1.1", 11, "expected an address"},
		{"ip.src == 10.0.0.0/40", 11, "expected an address"},
		{"ip.src > 10.0.0.0/8", 10, "network is compared with"},
		{"ip.src in {10.0.0.0/8..11.0.0.0/8}", 12, "two addresses of one family"},
		{"ip.src in {10.0.0.1..fe80::1}", 12, "two addresses of one family"},
		{"ip.src in {10.0.0.9..10.0.0.1}", 12, "is empty"},
		{"ip.src == toy.sequence", 8, "cannot be compared"},
		{"frame.time == 12:30", 15, "expected a time"},
		{`frame.time == "yesterday"`, 15, "expected a time"},
		{"frame.time_relative > 5kB", 23, "expected a duration"},
		{"flow.rtt > eighty", 12, "expected a duration"},
		{"toy.sequence in 5", 17, "expected {"},
		{"toy.sequence in {5", 19, "expected , or }"},
		{"toy.sequence in {}", 18, "expected a value"},
		{"toy.sequence in {9..5}", 18, "did you mean 5..9?"},
		{"toy.sequence in {1..}", 21, "expected the end of the range"},
		{"toy in {1}", 1, "has no value"},
		{"{1}", 2, "a value is compared with a field"},
		{"5 == 5", 1, "expected a field"},
		{"5", 1, "expected a field"},
		{`"text"`, 1, "expected a field"},
		{"toy.sequnce == abc", 1, "did you mean toy.sequence?"},
		{"abs(toy.name) == 1", 5, "abs is for numbers"},
		{"len(toy.sequence) == 1", 5, "len is for bytes and text"},
		{"upper(toy.body) == 1", 7, "upper is for text"},
		{"lenn(toy.name) == 1", 1, "did you mean len?"},
		{"len() == 1", 1, "takes 1 argument"},
		{"len(toy.name, toy.body) == 1", 1, "takes 1 argument"},
		{"len(toy.name == 1", 14, "expected , or )"},
		{"count(toy) == 1", 7, "fields with values"},
		{"toy.name & 1", 1, "whole numbers"},
		{"toy.ack_bits & toy.ack == 1", 16, "expected a number after &"},
		{"any toy.item", 13, "expected a comparison after any"},
		{"rel.event == akced", 14, "did you mean acked?"},
		{"finding.rule == false-akc", 17, "did you mean false-ack?"},
		{`flow.side == "c"`, 14, "one of a, b"},
		{"toy.name - 5 == 1", 1, "sums are of numbers"},
		{"toy.sequence + \"5\" == 1", 16, "expected a field"},
		{"toy.sequence + gibberish > 1", 16, "no field"},
		{"1 + 2", 1, "a value is compared with a field"},
		{"frame.time + frame.time > 1", 12, "cannot be joined"},
		{"frame.time * 2 > 1", 12, "cannot be joined"},
		{"frame.time_delta + frame.len > 1", 18, "expected a duration"},
		{"{frame.len + 1 > 5", 16, "expected }"},
		{"frame.len + > 5", 13, "expected a field or a value"},
		{"frame.len * toy.flag > 1", 13, "sums are of numbers"},
		{"max() > 1", 1, "takes arguments"},
		{"max(1, 2) > 1", 1, "asked about fields"},
		{"min(frame.len, frame.time_delta) > 1", 16, "is a duration"},
		{"toy.sequence == 5;", 18, "does not belong"},
		{"toy.sequence == 5 §", 19, "expected an operator"},
		{"ü.x == 5", 1, "no field is named"},
		{`toy.name == toy.nam`, 13, ""},
	} {
		_, err := table.Compile(c.filter)
		var e *filter.Error
		if c.message == "" {
			if err != nil {
				t.Errorf("%s: %v", c.filter, err)
			}
			continue
		}
		if !errors.As(err, &e) {
			t.Errorf("%s: compiled, expected an error with %q", c.filter, c.message)
			continue
		}
		if e.Column() != c.column || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s:\n%s\n%v\nexpected column %d and %q", c.filter, e.Pointer(), err, c.column, c.message)
		}
	}
	const longest = 64 << 10 // bytes of a filter, as Compile documents
	deep := strings.Repeat("(", 10000) + "toy" + strings.Repeat(")", 10000)
	for _, bad := range []string{
		deep, strings.Repeat("!", 10000) + "toy", strings.Repeat("len(", 1000),
		strings.Repeat("x", longest+1),
	} {
		if _, err := table.Compile(bad); err == nil {
			t.Errorf("a filter of %d bytes compiled", len(bad))
		}
	}
}

func TestPointer(t *testing.T) {
	_, err := testTable().Compile("udp && toy.näme == 5")
	var e *filter.Error
	if !errors.As(err, &e) {
		t.Fatal("no *Error")
	}
	if want := "udp && toy.näme == 5\n       ^^^^^^^^"; e.Pointer() != want {
		t.Errorf("got\n%s\nexpected\n%s", e.Pointer(), want)
	}
}
