package schema

// MarshalList returns the values as a JSON array, without their names. Values
// inside groups keep their names. Single values are encoded as by MarshalJSON.
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
