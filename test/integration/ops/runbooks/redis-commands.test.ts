import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { readRunbooks } from "../../../runbooks/read-runbooks.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { startPrivateRedis } from "../../../support/private-services.ts";
import { readUsers, usersPassword } from "../../../support/production-users.ts";

const manual = new URL("../../../../docs/operations/redis.md", import.meta.url);

/** Returns the commands of `redis-cli` in a text: the user, and the words that the server receives. */
const listRedisCommands = (text: string) =>
  [...text.replaceAll("\\\n", "").matchAll(/redis-cli (?:.*?)--user (\w+) --askpass (.+)$/gm)].map(
    ([line, user = "", words = ""]) => ({ line, user, words: words.replaceAll("'", "").split(" ") }),
  );

test("Redis with the shipped users carries out every command of the runbooks and of the manual", async () => {
  const { url } = await startPrivateRedis();
  const owner = new Redis(url);
  addCleanup(() => owner.disconnect());
  for (const line of await readUsers("users.acl"))
    if (!line.startsWith("user default ")) await owner.call("ACL", "SETUSER", ...line.split(" ").slice(1));

  const texts = [...readRunbooks().map(({ text }) => text), readFileSync(manual, "utf8")];
  const commands = texts.flatMap(listRedisCommands);
  expect(commands.length).toBeGreaterThanOrEqual(10);
  for (const { line, user, words } of commands) {
    const redis = new Redis(url, { username: user, password: usersPassword, lazyConnect: true });
    await redis.connect();
    const [command = "", ...args] = words;
    const answer = await redis.call(command, ...args).catch((error: unknown) => error);
    redis.disconnect();
    expect(answer, line).not.toBeInstanceOf(Error);
  }
  expect(await owner.config("GET", "appendonly")).toEqual(["appendonly", "yes"]);
});

test("no page runs redis-cli without a user, whom a server with the shipped users refuses", () => {
  const texts = [...readRunbooks().map(({ text }) => text), readFileSync(manual, "utf8")];
  const bare = texts.flatMap((text) =>
    text
      .replaceAll("\\\n", "")
      .split("\n")
      .filter((line) => /redis-cli (?!.*--user)\S/.test(line) && !line.includes("`redis-cli` ends")),
  );
  expect(bare).toEqual([]);
});
