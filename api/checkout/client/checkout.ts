import { startConsole } from "./console.ts";
import { offerCopy } from "./copy.ts";
import { startPaying } from "./pay.ts";
import { follow } from "./poll.ts";
import { apply, begin, version } from "./state.ts";

// The order matters: whoever listens has to be there before anything is told.
offerCopy();
startConsole();
const { askNow } = follow(version, apply);
begin(askNow);
startPaying();
