package machine

// KeepNewest appends x to a list of at most so many. Where the list is full, its
// oldest gives way.
func KeepNewest[T any](list []T, x T, most int) []T {
	if len(list) >= most {
		list = list[:copy(list, list[len(list)-most+1:])]
	}
	return append(list, x)
}
