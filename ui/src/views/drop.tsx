/** No trace: the page asks for one, where its host can read files; else it says how to open one. */

import { useState } from "preact/hooks";
import { theHost } from "../state/ask";
import { get, set } from "../state/store";

export function Drop() {
  const [error, setError] = useState("");
  const [reading, setReading] = useState("");
  const host = theHost();
  if (!host.open) {
    return (
      <main class="message">
        <h1>Nothing is open</h1>
        <p>
          Start the view with a recording: <code>holdup view TRACE</code>
        </p>
      </main>
    );
  }
  const take = async (file: File | undefined | null) => {
    if (!file || !host.open) return;
    setError("");
    setReading(file.name);
    try {
      const trace = await host.open(file);
      set({ traces: [...get().traces, trace], trace: trace.id });
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e));
    }
    setReading("");
  };
  return (
    <main
      class="message drop"
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        void take(e.dataTransfer?.files[0]);
      }}
    >
      <h1>Drop a recording here</h1>
      <p>A .holdup file, perf.data, Perfetto, trace.dat or .etl. It stays in this browser: nothing is sent anywhere.</p>
      <p>
        <label class="button">
          or choose one <input type="file" onChange={(e) => void take(e.currentTarget.files?.[0])} />
        </label>
      </p>
      {reading && <p role="status">Reading {reading} …</p>}
      {error && <p class="bad">{error}</p>}
    </main>
  );
}
