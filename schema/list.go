package schema

// MarshalList writes the values as a JSON array, without their names; values
// within groups keep theirs. What MarshalJSON says of single values holds here.
func (r Record) MarshalList() ([]byte, error) {
	out := []byte{'['}
	for i, m := range r {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendJSON(out, m.Value); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}
