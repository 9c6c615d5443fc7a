import { expect, test } from "vitest";
import { freePort } from "../../../local/free-ports.ts";

test("freePort never returns the same port twice, even when no process listens on it yet", async () => {
  const ports: number[] = [];
  for (let count = 0; count < 500; count += 1) ports.push(await freePort());
  expect(new Set(ports).size).toBe(ports.length);
});
