// Package web holds the page that `ackscope web` serves, and writes it as one file with captures
// inside, for `ackscope report --interactive`. `make web` builds the page, and the tag webassets
// links it into the program:
//
//	make web                              # needs npm; writes web/dist
//	go build -tags webassets ./cmd/ackscope
//
// The one file opens from a disk, and asks for nothing:
//
//	<meta http-equiv="Content-Security-Policy" content="default-src 'none'; …">
//	<style>app.css</style>
//	<script type="application/octet-stream" id="inside-worker">base64 of wasm_exec.js, worker.js</script>
//	<script type="application/octet-stream" id="inside-program">base64 of ackscope.wasm, gzip</script>
//	<script type="application/octet-stream" id="inside-0">base64 of the first file, gzip</script>
//	<script type="application/octet-stream" id="inside">base64 of the names of the files, as JSON</script>
//	<script>app.js</script>
package web
