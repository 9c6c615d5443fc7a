import { expect, test } from "vitest";
import { parseRedisUrl } from "../../../runtime/redis-url.ts";

const none = { login: {}, tls: false, db: 0 };
const node = (host: string, port: number) => ({ host, port });

test.each([
  ["redis://localhost", { kind: "server", ...none, nodes: [node("localhost", 6379)] }],
  ["redis://[::1]:7000/3", { kind: "server", ...none, nodes: [node("::1", 7000)], db: 3 }],
  [
    "rediss://pay_api:p%40ss%2F:word@redis.internal:6380/0",
    {
      kind: "server",
      nodes: [node("redis.internal", 6380)],
      login: { username: "pay_api", password: "p@ss/:word" },
      tls: true,
      db: 0,
    },
  ],
  ["redis://:only@a", { kind: "server", ...none, nodes: [node("a", 6379)], login: { password: "only" } }],
  [
    "redis+cluster://a,b:7001,c",
    { kind: "cluster", ...none, nodes: [node("a", 6379), node("b", 7001), node("c", 6379)] },
  ],
  [
    "rediss+cluster://u:p@a",
    { kind: "cluster", nodes: [node("a", 6379)], login: { username: "u", password: "p" }, tls: true, db: 0 },
  ],
  [
    "redis+sentinel://u:p@a,b:7001/2?master=pay&sentinel_username=s&sentinel_password=a%26b+c",
    {
      kind: "sentinel",
      nodes: [node("a", 26379), node("b", 7001)],
      login: { username: "u", password: "p" },
      tls: false,
      db: 2,
      master: "pay",
      sentinelLogin: { username: "s", password: "a&b+c" },
    },
  ],
])("%s is read whole", (url, expected) => {
  expect(parseRedisUrl(url)).toEqual(expected);
});
