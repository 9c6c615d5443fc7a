// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Whether a rollup's sequencer is up, as Chainlink's uptime feeds say it: 0 for yes, 1 for no, and since when.
contract Sequencer {
    int256 private answer;
    uint256 private startedAt = 1;

    function set(int256 answer_, uint256 startedAt_) external {
        answer = answer_;
        startedAt = startedAt_;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, answer, startedAt, startedAt, 1);
    }
}

/// A price, as Chainlink's feeds give one.
contract Feed {
    int256 private answer = 108500000;
    uint256 private updatedAt = block.timestamp;
    string public description = "EUR / USD";
    uint8 public constant decimals = 8;

    function set(int256 answer_, uint256 updatedAt_) external {
        answer = answer_;
        updatedAt = updatedAt_;
    }

    function describe(string calldata description_) external {
        description = description_;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, answer, updatedAt, updatedAt, 1);
    }
}
