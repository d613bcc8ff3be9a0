/** Which host this page has: what is embedded in the document decides. */

import type { Host } from "./host";
import { httpHost } from "./http";

export interface Embedded {
  kind: string;
  /** null: no trace inside, the page asks for one. */
  trace?: unknown;
}

export type MakeHost = (config: Embedded) => Host;

const makers = new Map<string, MakeHost>();

/** Hosts beside the server's name themselves here. */
export function registerHost(kind: string, make: MakeHost): void {
  makers.set(kind, make);
}

export function chooseHost(): Host {
  const element = document.getElementById("holdup-host");
  if (!element) return httpHost();
  const config = JSON.parse(element.textContent ?? "{}") as Embedded;
  const make = makers.get(config.kind);
  if (!make) throw new Error(`This page was made for a host of kind ${config.kind}, which it does not know.`);
  return make(config);
}
