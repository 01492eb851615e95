// Repetition for the preprocessor: REPEAT(M, ...) is M(0, ...) M(1, ...) ... M(VALUES_PER_PACKET-1, ...).
// P4 has no loops; a packet's values are spelled one by one, and this file is the only one that
// knows how. A sixteen below is a row of M with a common prefix: ROW_3(M) is M(48) ... M(63).
//
// REPEAT_PAIRS(M, ...) is M(0, 1, ...) M(2, 3, ...) ...: neighbours, for registers of two words.
// REPEAT_WORKERS(M, ...) is M(0, ...) ... M(31, ...).

#ifndef INA_REPEAT_P4
#define INA_REPEAT_P4

#define REPEAT_ROW_0(M, ...) \
    M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(3, __VA_ARGS__) \
    M(4, __VA_ARGS__) M(5, __VA_ARGS__) M(6, __VA_ARGS__) M(7, __VA_ARGS__) \
    M(8, __VA_ARGS__) M(9, __VA_ARGS__) M(10, __VA_ARGS__) M(11, __VA_ARGS__) \
    M(12, __VA_ARGS__) M(13, __VA_ARGS__) M(14, __VA_ARGS__) M(15, __VA_ARGS__)
#define REPEAT_ROW_1(M, ...) \
    M(16, __VA_ARGS__) M(17, __VA_ARGS__) M(18, __VA_ARGS__) M(19, __VA_ARGS__) \
    M(20, __VA_ARGS__) M(21, __VA_ARGS__) M(22, __VA_ARGS__) M(23, __VA_ARGS__) \
    M(24, __VA_ARGS__) M(25, __VA_ARGS__) M(26, __VA_ARGS__) M(27, __VA_ARGS__) \
    M(28, __VA_ARGS__) M(29, __VA_ARGS__) M(30, __VA_ARGS__) M(31, __VA_ARGS__)
#define REPEAT_ROW_2(M, ...) \
    M(32, __VA_ARGS__) M(33, __VA_ARGS__) M(34, __VA_ARGS__) M(35, __VA_ARGS__) \
    M(36, __VA_ARGS__) M(37, __VA_ARGS__) M(38, __VA_ARGS__) M(39, __VA_ARGS__) \
    M(40, __VA_ARGS__) M(41, __VA_ARGS__) M(42, __VA_ARGS__) M(43, __VA_ARGS__) \
    M(44, __VA_ARGS__) M(45, __VA_ARGS__) M(46, __VA_ARGS__) M(47, __VA_ARGS__)
#define REPEAT_ROW_3(M, ...) \
    M(48, __VA_ARGS__) M(49, __VA_ARGS__) M(50, __VA_ARGS__) M(51, __VA_ARGS__) \
    M(52, __VA_ARGS__) M(53, __VA_ARGS__) M(54, __VA_ARGS__) M(55, __VA_ARGS__) \
    M(56, __VA_ARGS__) M(57, __VA_ARGS__) M(58, __VA_ARGS__) M(59, __VA_ARGS__) \
    M(60, __VA_ARGS__) M(61, __VA_ARGS__) M(62, __VA_ARGS__) M(63, __VA_ARGS__)
#define REPEAT_ROW_4(M, ...) \
    M(64, __VA_ARGS__) M(65, __VA_ARGS__) M(66, __VA_ARGS__) M(67, __VA_ARGS__) \
    M(68, __VA_ARGS__) M(69, __VA_ARGS__) M(70, __VA_ARGS__) M(71, __VA_ARGS__) \
    M(72, __VA_ARGS__) M(73, __VA_ARGS__) M(74, __VA_ARGS__) M(75, __VA_ARGS__) \
    M(76, __VA_ARGS__) M(77, __VA_ARGS__) M(78, __VA_ARGS__) M(79, __VA_ARGS__)
#define REPEAT_ROW_5(M, ...) \
    M(80, __VA_ARGS__) M(81, __VA_ARGS__) M(82, __VA_ARGS__) M(83, __VA_ARGS__) \
    M(84, __VA_ARGS__) M(85, __VA_ARGS__) M(86, __VA_ARGS__) M(87, __VA_ARGS__) \
    M(88, __VA_ARGS__) M(89, __VA_ARGS__) M(90, __VA_ARGS__) M(91, __VA_ARGS__) \
    M(92, __VA_ARGS__) M(93, __VA_ARGS__) M(94, __VA_ARGS__) M(95, __VA_ARGS__)
#define REPEAT_ROW_6(M, ...) \
    M(96, __VA_ARGS__) M(97, __VA_ARGS__) M(98, __VA_ARGS__) M(99, __VA_ARGS__) \
    M(100, __VA_ARGS__) M(101, __VA_ARGS__) M(102, __VA_ARGS__) M(103, __VA_ARGS__) \
    M(104, __VA_ARGS__) M(105, __VA_ARGS__) M(106, __VA_ARGS__) M(107, __VA_ARGS__) \
    M(108, __VA_ARGS__) M(109, __VA_ARGS__) M(110, __VA_ARGS__) M(111, __VA_ARGS__)
#define REPEAT_ROW_7(M, ...) \
    M(112, __VA_ARGS__) M(113, __VA_ARGS__) M(114, __VA_ARGS__) M(115, __VA_ARGS__) \
    M(116, __VA_ARGS__) M(117, __VA_ARGS__) M(118, __VA_ARGS__) M(119, __VA_ARGS__) \
    M(120, __VA_ARGS__) M(121, __VA_ARGS__) M(122, __VA_ARGS__) M(123, __VA_ARGS__) \
    M(124, __VA_ARGS__) M(125, __VA_ARGS__) M(126, __VA_ARGS__) M(127, __VA_ARGS__)
#define REPEAT_ROW_8(M, ...) \
    M(128, __VA_ARGS__) M(129, __VA_ARGS__) M(130, __VA_ARGS__) M(131, __VA_ARGS__) \
    M(132, __VA_ARGS__) M(133, __VA_ARGS__) M(134, __VA_ARGS__) M(135, __VA_ARGS__) \
    M(136, __VA_ARGS__) M(137, __VA_ARGS__) M(138, __VA_ARGS__) M(139, __VA_ARGS__) \
    M(140, __VA_ARGS__) M(141, __VA_ARGS__) M(142, __VA_ARGS__) M(143, __VA_ARGS__)
#define REPEAT_ROW_9(M, ...) \
    M(144, __VA_ARGS__) M(145, __VA_ARGS__) M(146, __VA_ARGS__) M(147, __VA_ARGS__) \
    M(148, __VA_ARGS__) M(149, __VA_ARGS__) M(150, __VA_ARGS__) M(151, __VA_ARGS__) \
    M(152, __VA_ARGS__) M(153, __VA_ARGS__) M(154, __VA_ARGS__) M(155, __VA_ARGS__) \
    M(156, __VA_ARGS__) M(157, __VA_ARGS__) M(158, __VA_ARGS__) M(159, __VA_ARGS__)
#define REPEAT_ROW_10(M, ...) \
    M(160, __VA_ARGS__) M(161, __VA_ARGS__) M(162, __VA_ARGS__) M(163, __VA_ARGS__) \
    M(164, __VA_ARGS__) M(165, __VA_ARGS__) M(166, __VA_ARGS__) M(167, __VA_ARGS__) \
    M(168, __VA_ARGS__) M(169, __VA_ARGS__) M(170, __VA_ARGS__) M(171, __VA_ARGS__) \
    M(172, __VA_ARGS__) M(173, __VA_ARGS__) M(174, __VA_ARGS__) M(175, __VA_ARGS__)
#define REPEAT_ROW_11(M, ...) \
    M(176, __VA_ARGS__) M(177, __VA_ARGS__) M(178, __VA_ARGS__) M(179, __VA_ARGS__) \
    M(180, __VA_ARGS__) M(181, __VA_ARGS__) M(182, __VA_ARGS__) M(183, __VA_ARGS__) \
    M(184, __VA_ARGS__) M(185, __VA_ARGS__) M(186, __VA_ARGS__) M(187, __VA_ARGS__) \
    M(188, __VA_ARGS__) M(189, __VA_ARGS__) M(190, __VA_ARGS__) M(191, __VA_ARGS__)
#define REPEAT_ROW_12(M, ...) \
    M(192, __VA_ARGS__) M(193, __VA_ARGS__) M(194, __VA_ARGS__) M(195, __VA_ARGS__) \
    M(196, __VA_ARGS__) M(197, __VA_ARGS__) M(198, __VA_ARGS__) M(199, __VA_ARGS__) \
    M(200, __VA_ARGS__) M(201, __VA_ARGS__) M(202, __VA_ARGS__) M(203, __VA_ARGS__) \
    M(204, __VA_ARGS__) M(205, __VA_ARGS__) M(206, __VA_ARGS__) M(207, __VA_ARGS__)
#define REPEAT_ROW_13(M, ...) \
    M(208, __VA_ARGS__) M(209, __VA_ARGS__) M(210, __VA_ARGS__) M(211, __VA_ARGS__) \
    M(212, __VA_ARGS__) M(213, __VA_ARGS__) M(214, __VA_ARGS__) M(215, __VA_ARGS__) \
    M(216, __VA_ARGS__) M(217, __VA_ARGS__) M(218, __VA_ARGS__) M(219, __VA_ARGS__) \
    M(220, __VA_ARGS__) M(221, __VA_ARGS__) M(222, __VA_ARGS__) M(223, __VA_ARGS__)
#define REPEAT_ROW_14(M, ...) \
    M(224, __VA_ARGS__) M(225, __VA_ARGS__) M(226, __VA_ARGS__) M(227, __VA_ARGS__) \
    M(228, __VA_ARGS__) M(229, __VA_ARGS__) M(230, __VA_ARGS__) M(231, __VA_ARGS__) \
    M(232, __VA_ARGS__) M(233, __VA_ARGS__) M(234, __VA_ARGS__) M(235, __VA_ARGS__) \
    M(236, __VA_ARGS__) M(237, __VA_ARGS__) M(238, __VA_ARGS__) M(239, __VA_ARGS__)
#define REPEAT_ROW_15(M, ...) \
    M(240, __VA_ARGS__) M(241, __VA_ARGS__) M(242, __VA_ARGS__) M(243, __VA_ARGS__) \
    M(244, __VA_ARGS__) M(245, __VA_ARGS__) M(246, __VA_ARGS__) M(247, __VA_ARGS__) \
    M(248, __VA_ARGS__) M(249, __VA_ARGS__) M(250, __VA_ARGS__) M(251, __VA_ARGS__) \
    M(252, __VA_ARGS__) M(253, __VA_ARGS__) M(254, __VA_ARGS__) M(255, __VA_ARGS__)
#define REPEAT_ROW_16(M, ...) \
    M(256, __VA_ARGS__) M(257, __VA_ARGS__) M(258, __VA_ARGS__) M(259, __VA_ARGS__) \
    M(260, __VA_ARGS__) M(261, __VA_ARGS__) M(262, __VA_ARGS__) M(263, __VA_ARGS__) \
    M(264, __VA_ARGS__) M(265, __VA_ARGS__) M(266, __VA_ARGS__) M(267, __VA_ARGS__) \
    M(268, __VA_ARGS__) M(269, __VA_ARGS__) M(270, __VA_ARGS__) M(271, __VA_ARGS__)
#define REPEAT_ROW_17(M, ...) \
    M(272, __VA_ARGS__) M(273, __VA_ARGS__) M(274, __VA_ARGS__) M(275, __VA_ARGS__) \
    M(276, __VA_ARGS__) M(277, __VA_ARGS__) M(278, __VA_ARGS__) M(279, __VA_ARGS__) \
    M(280, __VA_ARGS__) M(281, __VA_ARGS__) M(282, __VA_ARGS__) M(283, __VA_ARGS__) \
    M(284, __VA_ARGS__) M(285, __VA_ARGS__) M(286, __VA_ARGS__) M(287, __VA_ARGS__)
#define REPEAT_ROW_18(M, ...) \
    M(288, __VA_ARGS__) M(289, __VA_ARGS__) M(290, __VA_ARGS__) M(291, __VA_ARGS__) \
    M(292, __VA_ARGS__) M(293, __VA_ARGS__) M(294, __VA_ARGS__) M(295, __VA_ARGS__) \
    M(296, __VA_ARGS__) M(297, __VA_ARGS__) M(298, __VA_ARGS__) M(299, __VA_ARGS__) \
    M(300, __VA_ARGS__) M(301, __VA_ARGS__) M(302, __VA_ARGS__) M(303, __VA_ARGS__)
#define REPEAT_ROW_19(M, ...) \
    M(304, __VA_ARGS__) M(305, __VA_ARGS__) M(306, __VA_ARGS__) M(307, __VA_ARGS__) \
    M(308, __VA_ARGS__) M(309, __VA_ARGS__) M(310, __VA_ARGS__) M(311, __VA_ARGS__) \
    M(312, __VA_ARGS__) M(313, __VA_ARGS__) M(314, __VA_ARGS__) M(315, __VA_ARGS__) \
    M(316, __VA_ARGS__) M(317, __VA_ARGS__) M(318, __VA_ARGS__) M(319, __VA_ARGS__)
#define REPEAT_ROW_20(M, ...) \
    M(320, __VA_ARGS__) M(321, __VA_ARGS__) M(322, __VA_ARGS__) M(323, __VA_ARGS__) \
    M(324, __VA_ARGS__) M(325, __VA_ARGS__) M(326, __VA_ARGS__) M(327, __VA_ARGS__) \
    M(328, __VA_ARGS__) M(329, __VA_ARGS__) M(330, __VA_ARGS__) M(331, __VA_ARGS__) \
    M(332, __VA_ARGS__) M(333, __VA_ARGS__) M(334, __VA_ARGS__) M(335, __VA_ARGS__)
#define REPEAT_ROW_21(M, ...) \
    M(336, __VA_ARGS__) M(337, __VA_ARGS__) M(338, __VA_ARGS__) M(339, __VA_ARGS__) \
    M(340, __VA_ARGS__) M(341, __VA_ARGS__) M(342, __VA_ARGS__) M(343, __VA_ARGS__) \
    M(344, __VA_ARGS__) M(345, __VA_ARGS__) M(346, __VA_ARGS__) M(347, __VA_ARGS__) \
    M(348, __VA_ARGS__) M(349, __VA_ARGS__) M(350, __VA_ARGS__) M(351, __VA_ARGS__)
#define REPEAT_HALF_ROW_22(M, ...) \
    M(352, __VA_ARGS__) M(353, __VA_ARGS__) M(354, __VA_ARGS__) M(355, __VA_ARGS__) \
    M(356, __VA_ARGS__) M(357, __VA_ARGS__) M(358, __VA_ARGS__) M(359, __VA_ARGS__)

#define REPEAT_PAIR_ROW_0(M, ...) \
    M(0, 1, __VA_ARGS__) M(2, 3, __VA_ARGS__) M(4, 5, __VA_ARGS__) \
    M(6, 7, __VA_ARGS__) M(8, 9, __VA_ARGS__) M(10, 11, __VA_ARGS__) \
    M(12, 13, __VA_ARGS__) M(14, 15, __VA_ARGS__) M(16, 17, __VA_ARGS__) \
    M(18, 19, __VA_ARGS__) M(20, 21, __VA_ARGS__) M(22, 23, __VA_ARGS__) \
    M(24, 25, __VA_ARGS__) M(26, 27, __VA_ARGS__) M(28, 29, __VA_ARGS__) \
    M(30, 31, __VA_ARGS__)
#define REPEAT_PAIR_ROW_1(M, ...) \
    M(32, 33, __VA_ARGS__) M(34, 35, __VA_ARGS__) M(36, 37, __VA_ARGS__) \
    M(38, 39, __VA_ARGS__) M(40, 41, __VA_ARGS__) M(42, 43, __VA_ARGS__) \
    M(44, 45, __VA_ARGS__) M(46, 47, __VA_ARGS__) M(48, 49, __VA_ARGS__) \
    M(50, 51, __VA_ARGS__) M(52, 53, __VA_ARGS__) M(54, 55, __VA_ARGS__) \
    M(56, 57, __VA_ARGS__) M(58, 59, __VA_ARGS__) M(60, 61, __VA_ARGS__) \
    M(62, 63, __VA_ARGS__)
#define REPEAT_PAIR_ROW_2(M, ...) \
    M(64, 65, __VA_ARGS__) M(66, 67, __VA_ARGS__) M(68, 69, __VA_ARGS__) \
    M(70, 71, __VA_ARGS__) M(72, 73, __VA_ARGS__) M(74, 75, __VA_ARGS__) \
    M(76, 77, __VA_ARGS__) M(78, 79, __VA_ARGS__) M(80, 81, __VA_ARGS__) \
    M(82, 83, __VA_ARGS__) M(84, 85, __VA_ARGS__) M(86, 87, __VA_ARGS__) \
    M(88, 89, __VA_ARGS__) M(90, 91, __VA_ARGS__) M(92, 93, __VA_ARGS__) \
    M(94, 95, __VA_ARGS__)
#define REPEAT_PAIR_ROW_3(M, ...) \
    M(96, 97, __VA_ARGS__) M(98, 99, __VA_ARGS__) M(100, 101, __VA_ARGS__) \
    M(102, 103, __VA_ARGS__) M(104, 105, __VA_ARGS__) M(106, 107, __VA_ARGS__) \
    M(108, 109, __VA_ARGS__) M(110, 111, __VA_ARGS__) M(112, 113, __VA_ARGS__) \
    M(114, 115, __VA_ARGS__) M(116, 117, __VA_ARGS__) M(118, 119, __VA_ARGS__) \
    M(120, 121, __VA_ARGS__) M(122, 123, __VA_ARGS__) M(124, 125, __VA_ARGS__) \
    M(126, 127, __VA_ARGS__)

#define REPEAT_WORKERS(M, ...) REPEAT_ROW_0(M, __VA_ARGS__) REPEAT_ROW_1(M, __VA_ARGS__)

#define REPEAT_64(M, ...) \
    REPEAT_ROW_0(M, __VA_ARGS__) REPEAT_ROW_1(M, __VA_ARGS__) REPEAT_ROW_2(M, __VA_ARGS__) \
    REPEAT_ROW_3(M, __VA_ARGS__)

#define REPEAT_128(M, ...) \
    REPEAT_64(M, __VA_ARGS__) \
    REPEAT_ROW_4(M, __VA_ARGS__) REPEAT_ROW_5(M, __VA_ARGS__) REPEAT_ROW_6(M, __VA_ARGS__) \
    REPEAT_ROW_7(M, __VA_ARGS__)

#define REPEAT_256(M, ...) \
    REPEAT_ROW_0(M, __VA_ARGS__) REPEAT_ROW_1(M, __VA_ARGS__) REPEAT_ROW_2(M, __VA_ARGS__) \
    REPEAT_ROW_3(M, __VA_ARGS__) REPEAT_ROW_4(M, __VA_ARGS__) REPEAT_ROW_5(M, __VA_ARGS__) \
    REPEAT_ROW_6(M, __VA_ARGS__) REPEAT_ROW_7(M, __VA_ARGS__) REPEAT_ROW_8(M, __VA_ARGS__) \
    REPEAT_ROW_9(M, __VA_ARGS__) REPEAT_ROW_10(M, __VA_ARGS__) REPEAT_ROW_11(M, __VA_ARGS__) \
    REPEAT_ROW_12(M, __VA_ARGS__) REPEAT_ROW_13(M, __VA_ARGS__) REPEAT_ROW_14(M, __VA_ARGS__) \
    REPEAT_ROW_15(M, __VA_ARGS__)

#define REPEAT_360(M, ...) \
    REPEAT_256(M, __VA_ARGS__) \
    REPEAT_ROW_16(M, __VA_ARGS__) REPEAT_ROW_17(M, __VA_ARGS__) REPEAT_ROW_18(M, __VA_ARGS__) \
    REPEAT_ROW_19(M, __VA_ARGS__) REPEAT_ROW_20(M, __VA_ARGS__) REPEAT_ROW_21(M, __VA_ARGS__) \
    REPEAT_HALF_ROW_22(M, __VA_ARGS__)

#if VALUES_PER_PACKET == 64
#define REPEAT(M, ...) REPEAT_64(M, __VA_ARGS__)
#define REPEAT_PAIRS(M, ...) REPEAT_PAIR_ROW_0(M, __VA_ARGS__) REPEAT_PAIR_ROW_1(M, __VA_ARGS__)
#elif VALUES_PER_PACKET == 128
#define REPEAT(M, ...) REPEAT_128(M, __VA_ARGS__)
#define REPEAT_PAIRS(M, ...) \
    REPEAT_PAIR_ROW_0(M, __VA_ARGS__) REPEAT_PAIR_ROW_1(M, __VA_ARGS__) \
    REPEAT_PAIR_ROW_2(M, __VA_ARGS__) REPEAT_PAIR_ROW_3(M, __VA_ARGS__)
#elif VALUES_PER_PACKET == 256
#define REPEAT(M, ...) REPEAT_256(M, __VA_ARGS__)
#elif VALUES_PER_PACKET == 360
#define REPEAT(M, ...) REPEAT_360(M, __VA_ARGS__)
#else
#error "VALUES_PER_PACKET must be 64, 128, 256 or 360"
#endif

#endif // INA_REPEAT_P4
