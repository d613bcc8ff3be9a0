// An HTTP server on port ARG that nobody asks for anything, with a few goroutines that wait as servers' do.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	jobs := make(chan int)
	for i := 0; i < 4; i++ {
		go func() {
			for job := range jobs {
				fmt.Println(job)
			}
		}()
	}
	go func() {
		for range time.Tick(50 * time.Millisecond) {
		}
	}()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "ok") })
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
