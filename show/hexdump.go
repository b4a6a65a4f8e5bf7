package show

import "strconv"

// AppendHexDump appends bytes in the form of tshark's -x: offset, 16 bytes,
// text.
func AppendHexDump(to, data []byte) []byte {
	for at := 0; at < len(data); at += 16 {
		for digits := len(strconv.FormatInt(int64(at), 16)); digits < 4; digits++ {
			to = append(to, '0')
		}
		to = strconv.AppendInt(to, int64(at), 16)
		to = append(to, ' ')
		row := data[at:min(at+16, len(data))]
		for i := range 16 {
			if i < len(row) {
				to = append(to, ' ', hexDigits[row[i]>>4], hexDigits[row[i]&15])
			} else {
				to = append(to, "   "...)
			}
		}
		to = append(to, "   "...)
		for _, c := range row {
			if c < 0x20 || c > 0x7e {
				c = '.'
			}
			to = append(to, c)
		}
		to = append(to, '\n')
	}
	return to
}
