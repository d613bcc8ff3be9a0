/** The host that is a server: the page was loaded from it, below its token, so that all addresses are relative. */

import type { TraceInfo } from "./api";
import { unpack } from "./frame";
import { Cancelled, type Host } from "./host";

const GONE = "The server does not answer. Start it again with `holdup view TRACE`, and open the address that it prints.";

async function call(path: string, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (e) {
    if (e instanceof DOMException && e.name === "AbortError") throw new Cancelled();
    throw new Error(GONE);
  }
}

/** The sentence that came with a refusal, if one did. */
async function refusal(response: Response): Promise<Error> {
  if (response.status === 409) return new Cancelled();
  if (response.status === 503) return new Error("The server has too many questions to answer; wait a moment.");
  if (response.status === 403 || response.status === 404) return new Error(`${GONE} (${response.status})`);
  return new Error(`The server refused the question with status ${response.status}. Reload the page.`);
}

export function httpHost(): Host {
  return {
    async traces() {
      const response = await call("api/traces");
      if (!response.ok) throw await refusal(response);
      return unpack<{ traces: TraceInfo[] }>(await response.arrayBuffer()).json.traces;
    },
    async ask(request, signal) {
      const response = await call("api/ask", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(request),
        signal: signal ?? null,
      });
      // An error in words is framed like any answer, whatever the status.
      if (!response.ok && response.headers.get("content-type") !== "application/octet-stream") throw await refusal(response);
      return response.arrayBuffer();
    },
  };
}
