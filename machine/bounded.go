package machine

// KeepNewest appends x to a list that holds at most the given number of items.
// When the list is full, it drops the oldest item first.
func KeepNewest[T any](list []T, x T, most int) []T {
	if len(list) >= most {
		list = list[:copy(list, list[len(list)-most+1:])]
	}
	return append(list, x)
}
