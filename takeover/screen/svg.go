package screen

func (f *frame) svg() string { return "" }
