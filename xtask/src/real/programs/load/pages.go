// A server that renders a page under the mutex of its cache, or "before" it takes that.
package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
)

var (
	mutex sync.Mutex
	pages = map[string]string{}

	before = len(os.Args) > 2
)

func render(key string) string {
	sum := sha256.Sum256([]byte(key))
	for i := 0; i < 6000; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return fmt.Sprintf("%x", sum)
}

func page(w http.ResponseWriter, r *http.Request) {
	text := ""
	if before {
		text = render(r.URL.Path)
	}
	mutex.Lock()
	if !before {
		text = render(r.URL.Path)
	}
	pages[r.URL.Path] = text
	mutex.Unlock()
	fmt.Fprint(w, text)
}

func main() {
	runtime.SetMutexProfileFraction(10)
	http.HandleFunc("/", page)
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
