import { Resolver } from "node:dns/promises";
import { setTimeout as delay } from "node:timers/promises";

/** Time that a name server has for its first answer, milliseconds. It is asked again once, and then has twice that time. */
const ANSWER_MS = 2_000;
const TRIES = 2;
/** How long a name server that has answered for one family of addresses is waited for about the other one, milliseconds. */
const OTHER_FAMILY_MS = 1_000;

/**
 * Returns a function that asks the name servers for all addresses of a name, those of IPv4 first; it throws when there is none.
 * Questions for the same name at the same time are one. It does not use getaddrinfo, which occupies one of the process's few threads
 * until the last name server has failed to answer: names whose servers never answer would keep the names of others waiting, and new
 * connections to Postgres, Redis and RPC endpoints. So the system's file of hosts does not count.
 * @param servers addresses of name servers; those of the system when unset
 */
export function createNameResolver(servers?: readonly string[]): (name: string) => Promise<string[]> {
  const running = new Map<string, Promise<string[]>>();
  return (name) => {
    const started = running.get(name) ?? resolveName(name, servers).finally(() => running.delete(name));
    running.set(name, started);
    return started;
  };
}

async function resolveName(name: string, servers: readonly string[] | undefined): Promise<string[]> {
  // Each resolver reads the system's configuration anew, which may have changed.
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: TRIES });
  if (servers) resolver.setServers(servers);
  const questions = [resolver.resolve4(name), resolver.resolve6(name)];
  const none: string[] = [];
  const late = Promise.any(questions).then(() => delay(OTHER_FAMILY_MS, none, { ref: false }));
  const families = await Promise.allSettled(questions.map((question) => Promise.race([question, late])));
  const addresses = families.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const failed = families.find((one) => one.status === "rejected");
  if (addresses.length === 0 && failed) throw failed.reason;
  return addresses;
}
